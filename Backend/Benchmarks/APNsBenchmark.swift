import Foundation
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// APNs pushes per CPU-second of the sender: the hub's, h2load (the limit: nghttp2 in C with nothing around it) and aioapns (the
/// peer), each in a process of its own, in turn, towards one gateway over HTTP/2 and TLS. The gateway checks each push, remembers
/// its id on disk and drops it, since it is not to be stored and its device is away.
struct APNsBenchmark {
    let roundCount: Int
    let pushCount: Int
    private static let deviceCount = 256
    private static let payloadByteCount = 300
    /// Of h2load: the hub's connections, and the requests that the gateway takes on each.
    private static let connectionCount = 4
    private static let streamCount = 250

    func run() async throws {
        let door = try TidingsProcess(on: .load)
        defer { door.stop() }
        let task = try await task(door)
        let file = door.state + "/apns-task.json"
        try Files.replace(file, with: Array(try JSONEncoder().encode(task)))
        let limit = try h2load(task, folder: door.state)
        let peer = Programs.peer("aioapns_load.py", imports: "aioapns")

        Console.print(
            "APNs pushes per CPU-second of the sender, \(pushCount) of \(task.payload.utf8.count) bytes to \(Self.deviceCount) devices"
        )
        if peer == nil { Console.print("  aioapns is left out: it is not installed") }
        var figures = Figures()
        for number in 1...roundCount {
            let ours = try Self.cost(of: Programs.own, ["send-apns", file])
            // Less what start and handshakes take, since the others are measured from their first push.
            let start = try limit.run(Self.connectionCount, on: .measured)
            let best = Double(pushCount) / (try limit.run(pushCount, on: .measured) - start)
            figures.add("tidings/h2load", ours.pushesPerCPUSecond / best)
            var line =
                "  round \(number)  tidings \(decimal(ours.pushesPerCPUSecond, 0))  h2load \(decimal(best, 0))"
            if let peer {
                let theirs = try Self.cost(of: peer.python, [peer.script, file])
                figures.add("tidings/aioapns", ours.pushesPerCPUSecond / theirs.pushesPerCPUSecond)
                line += "  aioapns \(decimal(theirs.pushesPerCPUSecond, 0))"
            }
            Console.print(line)
        }
        figures.report()
    }

    private func task(_ door: TidingsProcess) async throws -> APNsTask {
        let keys = try door.gatewayKeys()["apns"]
        guard let keyID = keys?["keyId"]?.stringValue, let teamID = keys?["teamId"]?.stringValue,
            let privateKey = keys?["privateKey"]?.stringValue
        else { throw BenchmarkError("the gateway's keys are not as expected") }
        let frame = #"{"aps": {"alert": ""}}"#
        let text = String(repeating: "x", count: Self.payloadByteCount - frame.utf8.count)
        return APNsTask(
            gateway: "https://" + door.gateway,
            authority: door.state + "/ca/ca.pem",
            keyID: keyID,
            teamID: teamID,
            privateKey: privateKey,
            topic: "com.example.tutorial",
            payload: frame.replacing("\"\"", with: "\"\(text)\""),
            tokens: try await door.handles(Self.deviceCount, .apns),
            count: pushCount
        )
    }

    /// The same fields as the others have, but for one `apns-id`: h2load writes the same for all requests.
    private func h2load(_ task: APNsTask, folder: String) throws -> H2Load {
        let token = try WebToken.sign(
            header: JSONObject(["alg": "ES256", "kid": .string(task.keyID)]),
            claims: JSONObject(["iss": .string(task.teamID), "iat": .number(SystemTimeSource().now.seconds)]),
            with: .privateKey(task.privateKey)
        )
        return try H2Load(
            task.tokens.map { "\(task.gateway)/3/device/\($0.lowercased())" },
            headers: APNsTask.headers + [
                ("authorization", "bearer " + token), ("apns-topic", task.topic),
                ("apns-id", UUID().uuidString.lowercased()),
            ],
            body: Array(task.payload.utf8),
            connections: Self.connectionCount,
            streams: Self.streamCount,
            folder: folder
        )
    }

    private static func cost(of program: String, _ arguments: [String]) throws -> PushCost {
        let process = try MeasuredProcess(program, arguments, on: .measured, showsErrors: true)
        let cost = try JSONDecoder().decode(PushCost.self, from: Data(try process.result().utf8))
        guard cost.failed == 0 else {
            throw BenchmarkError(
                "\(cost.failed) of \(cost.count) pushes of \(program) were not answered with 200"
            )
        }
        return cost
    }
}

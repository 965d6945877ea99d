import DeviceLink
import GatewayConnection
import Glibc
import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import Synchronization
import TidingsConformance
import TidingsModels

/// One broadcast to so many APNs handles through a gateway that fails on demand: GOAWAYs, dead tokens, streams that are never answered,
/// and fewer of them on the way. Every push must end in one outcome, and every one that succeeded must be on its device once.
struct FaultTest {
    let count: Int
    let folder: String
    private static let deviceCount = 100

    /// Pushes by channel.
    private final class Received: Sendable {
        private let counts = Mutex<[String: Int]>([:])
        func add(_ channel: String) { counts.withLock { $0[channel, default: 0] += 1 } }
        var total: Int { counts.withLock { $0.values.reduce(0, +) } }
        var doubled: Int { counts.withLock { $0.values.reduce(0) { $0 + max(0, $1 - 1) } } }
    }

    /// - Returns: How many statements did not hold.
    func run() async throws -> Int {
        let server = try Programs.start(
            "tidings",
            ["serve", "--dev", "--state", folder + "/s"]
                + ["backend", "hub", "gateway"].flatMap { ["--\($0)-address", "127.0.0.1:0"] }
        )
        defer { server.send(SIGKILL) }
        let ready = try JSONValue(parsing: Array(try await server.nextLine().utf8))
        func port(_ name: String) throws -> Int {
            guard let url = ready[name]?.stringValue.flatMap({ HTTPURL($0) }) else {
                throw WorldFailure("the server did not say where its \(name) listens")
            }
            return url.port
        }
        // In clear: what is tried is HTTP/2 and the queue behind it.
        let gateway = "http://127.0.0.1:\(try port("gateway"))"
        let hub = try await client(port: try port("hub"))
        let received = Received()
        let (connections, handles) = try await devices(gateway, received)
        defer { for connection in connections { connection.stop() } }
        try await register(handles, at: hub)
        for fault in [
            "\"streamLimit\",\"streams\":100,\"count\":1",
            "\"streamLimit\",\"streams\":10,\"every\":\(count / 2),\"count\":1",
            "\"goaway\",\"every\":\(count / 10)", "\"answer\",\"status\":410,\"every\":100",
            "\"hang\",\"every\":1000",
        ] { try await post("{\"platform\":\"apns\",\"fault\":\(fault)}", gateway) }

        let before = Self.residentBytes(server.process)
        let start = ContinuousClock.now
        let cpu = Self.cpuSeconds(server.process)
        guard let id = try await hub.send(.native(.apns, #"{"aps":{"alert":"everyone"}}"#), tags: "all")
        else {
            throw WorldFailure("the hub gave no id")
        }
        var peak = before
        var details = try await hub.details(id)
        while !details.state.isFinal, ContinuousClock.now - start < .seconds(600) {
            try await Task.sleep(for: .milliseconds(200))
            peak = max(peak, Self.residentBytes(server.process))
            details = try await hub.details(id)
        }
        let outcomes = details.outcomes[.apns] ?? [:]
        let success = outcomes[.success] ?? 0
        while received.total < success, ContinuousClock.now - start < .seconds(660) {
            try await Task.sleep(for: .milliseconds(200))
        }
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let used = Self.cpuSeconds(server.process) - cpu
        let faults = try await applied(gateway)
        Console.print(
            "\(count) pushes in \(Int(seconds)) s, \(Int(used)) s CPU of hub and gateway; memory \(before >> 20) MiB before, \(peak >> 20) MiB at most"
        )
        Console.print(
            "GOAWAY \(faults[2]), 410 \(faults[3]), never answered \(faults[4]); streams limited to 100 \(faults[0]) time, to 10 \(faults[1]) time"
        )
        let text = outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
            "\($0.key.rawValue) \($0.value)"
        }
        Console.print("outcomes: \(text.joined(separator: ", ")); received \(received.total)")
        var failures = 0
        func expect(_ holds: Bool, _ text: String) {
            Console.print("\(holds ? "ok    " : "FAILED") \(text)")
            if !holds { failures += 1 }
        }
        expect(details.state == .completed, "the send is completed")
        expect(outcomes.values.reduce(0, +) == count, "every target has one outcome")
        expect(
            success + (outcomes[.expiredChannel] ?? 0) == count,
            "each is Success or, after 410, ExpiredChannel"
        )
        expect(outcomes[.expiredChannel] == faults[3], "as many expired as got a 410")
        expect(received.total - received.doubled == success, "none lost: every Success is on its device")
        expect(received.doubled == 0, "none doubled")
        expect(
            faults[0] == 1 && faults[1] == 1 && faults[2...4].allSatisfy { $0 > 0 },
            "every fault happened"
        )
        expect(peak - before < 256 << 20, "memory stayed within 256 MiB of where it was")
        return failures
    }

    private func client(port: Int) async throws -> HubClient {
        let output = try await Programs.run(
            "tidings",
            ["keys", "--state", folder + "/s", "--endpoint", "http://127.0.0.1:\(port)"],
            [:]
        )
        guard let line = output.lines.first(where: { $0.contains("DefaultFull") }) else {
            throw WorldFailure("there is no connection string: \(output.errors)")
        }
        return HubClient(
            try HubConnectionString(parsing: ASCII.trimmed(line)),
            hub: "tidings",
            client: HTTPClient(),
            time: SystemTimeSource()
        )
    }

    /// Connections with their channels, and the handles of all.
    private func devices(
        _ gateway: String,
        _ received: Received
    ) async throws -> ([GatewayConnection], [String]) {
        guard let url = HTTPURL(gateway) else { throw WorldFailure("'\(gateway)' is not a URL") }
        let each = count / Self.deviceCount
        var connections: [GatewayConnection] = []
        var handles: [String] = []
        for device in 0..<Self.deviceCount {
            let connection = GatewayConnection(url: url, tls: nil, uaid: nil, jitter: { 0.5 })
            connections.append(connection)
            let (stream, continuation) = AsyncStream.makeStream(of: String.self)
            // Ends when the connection is stopped.
            Task {
                for await event in connection.events {
                    switch event {
                    case .registered(_, let handle): continuation.yield(handle)
                    case .notification(let notification):
                        received.add(notification.channelID)
                        connection.acknowledge([
                            .init(channelID: notification.channelID, version: notification.version)
                        ])
                    default: break
                    }
                }
                continuation.finish()
            }
            connection.start()
            for channel in 0..<each {
                let digits = String(device * each + channel, radix: 16)
                let padded = String(repeating: "0", count: 12 - digits.count) + digits
                connection.register(channelID: "00000000-0000-4000-8000-\(padded)", platform: .apns)
            }
            var waiting = each
            for await handle in stream {
                handles.append(handle)
                waiting -= 1
                if waiting == 0 { break }
            }
        }
        return (connections, handles)
    }

    private func register(_ handles: [String], at hub: HubClient) async throws {
        let tag = try HubTag("all")
        try await withThrowingTaskGroup { group in
            for worker in 0..<64 {
                group.addTask {
                    for index in stride(from: worker, to: handles.count, by: 64) {
                        _ = try await hub.create(
                            RegistrationContent(
                                handle: try PlatformHandle(handles[index], platform: .apns),
                                tags: [tag]
                            )
                        )
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func post(_ json: String, _ gateway: String) async throws {
        guard let url = HTTPURL(gateway + "/-/faults") else { return }
        let answer = try await HTTPClient().send(
            OutboundRequest("POST", url, fields: ["Content-Type": "application/json"], body: Array(json.utf8))
        )
        guard answer.status.code == 201 else { throw WorldFailure(answer.text) }
    }

    /// How often each fault happened, in the order that they were asked for.
    private func applied(_ gateway: String) async throws -> [Int] {
        guard let url = HTTPURL(gateway + "/-/faults") else { return [] }
        let answer = try await HTTPClient().send(OutboundRequest("GET", url))
        let entries = try JSONValue(parsing: answer.body)["faults"]?.arrayValue ?? []
        return entries.map { $0["applied"]?.integerValue ?? 0 }
    }

    private static func residentBytes(_ process: pid_t) -> Int {
        let text = String(decoding: (try? Files.read("/proc/\(process)/statm")) ?? [], as: UTF8.self)
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0)
            * sysconf(Int32(_SC_PAGESIZE))
    }

    private static func cpuSeconds(_ process: pid_t) -> Double {
        let text = String(decoding: (try? Files.read("/proc/\(process)/stat")) ?? [], as: UTF8.self)
        let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
            return 0
        }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }
}

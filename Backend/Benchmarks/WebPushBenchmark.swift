import Foundation
import HTTPMessages
import JSONBytes
import ProcessLifecycle
import PushCredentials

/// Web Push messages per CPU-second of the sender. Encryption alone (RFC 8291) against one ECDH by `openssl speed` (the limit) and
/// pywebpush (the peer); encryption, VAPID and the request against pywebpush, towards one gateway.
struct WebPushBenchmark {
    let roundCount: Int
    let secondCount: Int
    let pushCount: Int
    private static let deviceCount = 64
    private static let payloadByteCount = 300

    func run() async throws {
        let door = try TidingsProcess(on: .load)
        defer { door.stop() }
        let file = door.state + "/webpush-task.json"
        try Files.replace(file, with: Array(try JSONEncoder().encode(try await task(door))))
        let peer = Programs.peer("pywebpush_load.py", imports: "pywebpush")

        Console.print("Web Push messages of \(Self.payloadByteCount) bytes per CPU-second of the sender")
        if peer == nil { Console.print("  pywebpush is left out: it is not installed") }
        var figures = Figures()
        for number in 1...roundCount {
            let limit = try ecdhPerCPUSecond()
            let ours = try Self.cost(of: Programs.own, ["send-webpush", file])
            let oneKey = try Self.cost(of: Programs.own, ["send-webpush", file, "--one-key"])
            figures.add("encryption tidings/openssl", ours.encryptedPerCPUSecond / limit)
            figures.add(
                "encryption with one key per 1,024 tidings/openssl",
                oneKey.encryptedPerCPUSecond / limit
            )
            var encryption =
                "  round \(number)  encrypted: openssl's ecdhp256 \(decimal(limit, 0))  tidings \(decimal(ours.encryptedPerCPUSecond, 0))"
                + " (one key per 1,024: \(decimal(oneKey.encryptedPerCPUSecond, 0)))"
            var sent =
                "  round \(number)  sent: tidings \(decimal(ours.sentPerCPUSecond, 0))"
                + " (one key per 1,024: \(decimal(oneKey.sentPerCPUSecond, 0)))"
            if let peer {
                let theirs = try Self.cost(of: peer.python, [peer.script, file])
                encryption += "  pywebpush \(decimal(theirs.encryptedPerCPUSecond, 0))"
                sent += "  pywebpush \(decimal(theirs.sentPerCPUSecond, 0))"
                figures.add(
                    "encryption tidings/pywebpush",
                    ours.encryptedPerCPUSecond / theirs.encryptedPerCPUSecond
                )
                figures.add("sent tidings/pywebpush", ours.sentPerCPUSecond / theirs.sentPerCPUSecond)
            }
            Console.print(encryption)
            Console.print(sent)
            let repeated = ours.repeated + oneKey.repeated
            if repeated > 0 { Console.print("  \(repeated) requests had no answer and were sent again") }
        }
        figures.report()
    }

    private func task(_ door: TidingsProcess) async throws -> WebPushTask {
        guard let keys = try door.gatewayKeys()["webPush"], let privateKey = keys["privateKey"]?.stringValue,
            let publicKey = keys["publicKey"]?.stringValue
        else { throw BenchmarkError("the gateway's keys are not as expected") }
        return WebPushTask(
            gateway: "https://" + door.gateway,
            authority: door.state + "/ca/ca.pem",
            endpoints: try await door.handles(Self.deviceCount, nil, key: publicKey),
            p256dh: Base64.encodeURL(try P256KeyPair.generate().point),
            auth: Base64.encodeURL(Digests.random(WebPushMessage.authByteCount)),
            subject: "mailto:push@example.com",
            vapidPrivateKey: privateKey,
            payload: String(repeating: "x", count: Self.payloadByteCount),
            encryptedCount: pushCount,
            sentCount: pushCount / 4
        )
    }

    /// One key agreement each, of user time (openssl-speed(1)): "+F5:2:256:16700.0:0.000060", operations a second in the fourth field.
    private func ecdhPerCPUSecond() throws -> Double {
        let report = try MeasuredProcess(
            Programs.installed("openssl"),
            ["speed", "-seconds", String(secondCount), "-mr", "ecdhp256"],
            on: .measured
        ).result()
        let line = report.split(separator: "\n").first { $0.hasPrefix("+F5:") }
        guard let fields = line?.split(separator: ":"), fields.count == 5, let rate = Double(fields[3]) else {
            throw BenchmarkError("openssl's report is not as expected:\n\(report)")
        }
        return rate
    }

    private static func cost(of program: String, _ arguments: [String]) throws -> WebPushCost {
        let process = try MeasuredProcess(program, arguments, on: .measured, showsErrors: true)
        let cost = try JSONDecoder().decode(WebPushCost.self, from: Data(try process.result().utf8))
        guard cost.failed == 0 else {
            throw BenchmarkError("\(cost.failed) of \(cost.sentCount) messages of \(program) were not taken")
        }
        return cost
    }
}

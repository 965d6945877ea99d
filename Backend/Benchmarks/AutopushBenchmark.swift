import DeviceLink
import GatewayConnection
import HTTPMessages
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TLSTransport
import TidingsModels

/// CPU time of the gateway for a Web Push message that comes in (VAPID and all) and goes out to a connected device, which
/// acknowledges it; against a bare `POST /` of the same fields and body to the same gateway, which answers 200 and looks at nothing.
/// HTTP/2 and TLS on the way in, WebSocket and TLS on the way out.
struct AutopushBenchmark {
    let roundCount: Int
    let messageCount: Int
    private static let deviceCount = 16
    private static let connectionCount = 4
    /// Of each connection: all together stay far below the 1,000 messages that may wait for a device.
    private static let streamCount = 32
    private static let bodyByteCount = 400

    func run() async throws {
        let gateway = try TidingsProcess()
        defer { gateway.stop() }
        let keys = try gateway.gatewayKeys()["webPush"]
        guard let privateKey = keys?["privateKey"]?.stringValue,
            let publicKey = keys?["publicKey"]?.stringValue
        else { throw BenchmarkError("the gateway's keys are not as expected") }
        let devices = try await AcknowledgingDevices(gateway, count: Self.deviceCount, key: publicKey)
        defer { devices.close() }
        let authorization = try authorization(gateway, privateKey: privateKey, publicKey: publicKey)
        func load(_ name: String, _ addresses: [String], ttl: Int) throws -> H2Load {
            try H2Load(
                addresses,
                headers: [
                    ("authorization", authorization), ("ttl", String(ttl)), ("urgency", "high"),
                    ("content-encoding", "aes128gcm"), ("content-type", "application/octet-stream"),
                ],
                body: Digests.random(Self.bodyByteCount),
                connections: Self.connectionCount,
                streams: Self.streamCount,
                folder: gateway.state,
                name: name
            )
        }
        let bare = try load("bare", ["https://\(gateway.gateway)/"], ttl: 60)
        let stored = try load("stored", devices.addresses, ttl: 60)
        let passing = try load("passing", devices.addresses, ttl: 0)

        Console.print(
            "server CPU per Web Push message of \(Self.bodyByteCount) bytes, from the POST to the acknowledgement,"
                + " \(messageCount) to \(Self.deviceCount) connected devices"
        )
        try bare.run(messageCount / 10, on: .load)
        var figures = Figures()
        for number in 1...roundCount {
            let nothing = try await microseconds(gateway, bare, nil)
            let kept = try await microseconds(gateway, stored, devices)
            let passed = try await microseconds(gateway, passing, devices)
            figures.add("TTL 60/bare POST", kept / nothing)
            figures.add("TTL 0/bare POST", passed / nothing)
            Console.print(
                "  round \(number)  bare POST \(decimal(nothing, 1)) us  TTL 60 \(decimal(kept, 1)) us"
                    + "  TTL 0 \(decimal(passed, 1)) us"
            )
        }
        figures.report()
    }

    private func authorization(
        _ gateway: TidingsProcess,
        privateKey: String,
        publicKey: String
    ) throws -> String {
        guard let point = Base64.decode(publicKey), let scalar = Base64.decode(privateKey) else {
            throw BenchmarkError("the gateway's keys are not base64")
        }
        return try VAPID.authorization(
            audience: "https://" + gateway.gateway,
            subject: "mailto:push@example.com",
            expires: SystemTimeSource().now + .seconds(3600),
            key: .p256(point: point, scalar: scalar),
            point: point
        )
    }

    /// The server's CPU time per message; each must have arrived at a device.
    private func microseconds(
        _ gateway: TidingsProcess,
        _ load: H2Load,
        _ devices: AcknowledgingDevices?
    ) async throws -> Double {
        let before = try gateway.process.cpuSeconds
        try load.run(messageCount, on: .load)
        try await devices?.receive(messageCount)
        return (try gateway.process.cpuSeconds - before) * 1e6 / Double(messageCount)
    }
}

/// Connected devices that acknowledge each message as it comes.
struct AcknowledgingDevices {
    private let devices: [IdleDevice]
    /// One element for each message; it ends when a device loses its gateway.
    private let arrivals: AsyncThrowingStream<Void, any Error>
    /// For the last messages to arrive, after the sender has its answers.
    private static let deadline = Duration.seconds(30)

    /// - Parameter key: The application server that may send, base64url.
    init(_ gateway: TidingsProcess, count: Int, key: String) async throws {
        guard let url = HTTPURL("https://" + gateway.gateway) else {
            throw BenchmarkError("'\(gateway.gateway)' is no authority")
        }
        let context = try TLSContext.client(trusting: gateway.certificateAuthority, protocols: [])
        let (arrivals, arrived) = AsyncThrowingStream.makeStream(of: Void.self)
        self.arrivals = arrivals
        var devices: [IdleDevice] = []
        for _ in 0..<count {
            let device = try await IdleDevice.register(url, context, nil, key: key)
            devices.append(device)
            // Ends with the connection's events, which close() ends.
            Task {
                for await event in device.connection.events {
                    switch event {
                    case .notification(let message):
                        device.connection.acknowledge([
                            .init(channelID: message.channelID, version: message.version)
                        ])
                        arrived.yield()
                    case .disconnected(let reason):
                        arrived.finish(throwing: BenchmarkError("a device lost the gateway: \(reason)"))
                    default: break
                    }
                }
            }
        }
        self.devices = devices
    }

    var addresses: [String] { devices.map(\.handle) }

    /// Waits for so many messages.
    func receive(_ count: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { [arrivals] group in
            group.addTask {
                var left = count
                for try await _ in arrivals {
                    left -= 1
                    if left == 0 { return }
                }
                throw BenchmarkError("\(left) of \(count) messages did not arrive")
            }
            group.addTask {
                try await Task.sleep(for: Self.deadline)
                throw BenchmarkError("not all of \(count) messages arrived within \(Self.deadline)")
            }
            try await group.next()
            group.cancelAll()
        }
    }

    func close() { for device in devices { device.close() } }
}

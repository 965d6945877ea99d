import EventLoops
import GatewayConnection
import HTTPMessages
import ProcessLifecycle
import Synchronization
import TLSTransport
import TidingsModels

/// Resident memory of the gateway per device that is connected, identified and registered and then silent, against nginx per
/// kept connection that has had one answer. The kernel's socket memory is the same for both and not part of it.
struct IdleBenchmark {
    let connectionCount: Int
    /// Opened at a time: below every listener's queue.
    private let waveCount = 100

    func run() async throws {
        Console.print("resident bytes of the server per idle connection, \(connectionCount) connections")
        let tidingsPlain = try await tidings(tls: false)
        let nginxPlain = try await nginx(tls: false)
        report("plain", tidingsPlain, nginxPlain)
        let tidingsTLS = try await tidings(tls: true)
        let nginxTLS = try await nginx(tls: true)
        report("TLS", tidingsTLS, nginxTLS)
    }

    private func report(_ name: String, _ ours: Int, _ theirs: Int) {
        Console.print(
            "  \(name)  tidings \(ours)  nginx \(theirs)  ratio \(decimal(Double(ours) / Double(max(1, theirs)), 2))"
        )
    }

    private func tidings(tls: Bool) async throws -> Int {
        let server = try TidingsProcess()
        defer { server.stop() }
        let context = tls ? try TLSContext.client(trusting: server.certificateAuthority, protocols: []) : nil
        let url = try Self.url((tls ? "https://" : "http://") + server.gateway)
        return try await growth(of: server.process) { try await IdleDevice.open(url, context) }
    }

    private func nginx(tls: Bool) async throws -> Int {
        // Only its certificate authority is used.
        let authority = try TidingsProcess()
        defer { authority.stop() }
        let server = try await NginxProcess(
            connectionCountMax: 2 * connectionCount + 1000,
            authorityFolder: authority.state + "/ca"
        )
        defer { server.stop() }
        let context =
            tls ? try TLSContext.client(trusting: authority.certificateAuthority, protocols: []) : nil
        let port = tls ? server.secure : server.plain
        return try await growth(of: server.process) { try await KeptConnection.open(port: port, context) }
    }

    private static func url(_ text: String) throws -> HTTPURL {
        guard let url = HTTPURL(text) else { throw BenchmarkError("'\(text)' is not a URL") }
        return url
    }

    /// A first wave brings caches and tables to their size; what counts is the growth from there.
    private func growth(
        of server: MeasuredProcess,
        open: @escaping @Sendable () async throws -> any IdleConnection
    ) async throws -> Int {
        var opened: [any IdleConnection] = []
        defer { for connection in opened { connection.close() } }
        opened += try await wave(connectionCount / 5, open)
        let before = try await settled(server)
        opened += try await wave(connectionCount, open)
        return (try await settled(server) - before) / connectionCount
    }

    private func wave(
        _ count: Int,
        _ open: @escaping @Sendable () async throws -> any IdleConnection
    ) async throws -> [any IdleConnection] {
        var connections: [any IdleConnection] = []
        while connections.count < count {
            let size = min(waveCount, count - connections.count)
            connections += try await withThrowingTaskGroup(of: (any IdleConnection).self) { group in
                for _ in 0..<size { group.addTask { try await open() } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
        }
        return connections
    }

    /// Memory has no event to wait for: read it until two readings a quarter of a second apart are the same, 20 at most.
    private func settled(_ server: MeasuredProcess) async throws -> Int {
        var last = try server.residentByteCount
        for _ in 0..<20 {
            try await Task.sleep(for: .milliseconds(250))
            let next = try server.residentByteCount
            if next == last { break }
            last = next
        }
        return last
    }
}

/// Something that stays open and silent.
protocol IdleConnection: Sendable {
    func close()
}

/// A device after hello and register.
struct IdleDevice: IdleConnection {
    let connection: GatewayConnection
    let channelID: String
    let handle: String

    static func open(_ url: HTTPURL, _ context: TLSContext?) async throws -> any IdleConnection {
        try await register(url, context, .apns)
    }

    /// - Parameters:
    ///   - platform: Nil for Web Push.
    ///   - key: Web Push: the application server that may send, base64url.
    static func register(
        _ url: HTTPURL,
        _ context: TLSContext?,
        _ platform: Platform?,
        key: String? = nil
    ) async throws -> IdleDevice {
        let connection = GatewayConnection(url: url, tls: context, uaid: nil) { 0.5 }
        let digits = (0..<32).map { _ in "0123456789abcdef".randomElement() ?? "0" }
        let channelID = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(
            separator: "-"
        )
        connection.register(channelID: channelID, platform: platform, key: key)
        connection.start()
        for await event in connection.events {
            switch event {
            case .registered(_, let handle):
                return IdleDevice(connection: connection, channelID: channelID, handle: handle)
            case .disconnected(let reason): throw BenchmarkError("the gateway is lost: \(reason)")
            case .registrationRefused(_, let status, let reason):
                throw BenchmarkError("the gateway refuses: \(status) \(reason)")
            default: break
            }
        }
        throw BenchmarkError("the connection ended")
    }

    func close() { connection.stop() }
}

/// A kept HTTP/1.1 connection after one answer. Loop-confined but for the lock, which `@unchecked Sendable` rests on.
final class KeptConnection: StreamConnectionHandler, IdleConnection, @unchecked Sendable {
    private var connection: StreamConnection?
    private let loop: EventLoop
    private let answered: Mutex<CheckedContinuation<Void, any Error>?>

    private init(_ continuation: CheckedContinuation<Void, any Error>, on loop: EventLoop) {
        answered = Mutex(continuation)
        self.loop = loop
    }

    static func open(port: Int, _ context: TLSContext?) async throws -> any IdleConnection {
        let loop = EventLoopGroup.shared.next()
        let kept = Mutex<KeptConnection?>(nil)
        try await withCheckedThrowingContinuation { continuation in
            let connection = KeptConnection(continuation, on: loop)
            kept.withLock { $0 = connection }
            Task(executorPreference: loop) {
                do {
                    try await loop.connect(
                        host: "localhost",
                        port: port,
                        tls: context,
                        handler: { connection },
                        attach: { _, stream in connection.connection = stream }
                    )
                } catch { connection.finish(.failure(error)) }
            }
        }
        guard let connection = kept.withLock({ $0 }) else { throw BenchmarkError("no connection") }
        return connection
    }

    func close() { loop.execute { [self] in connection?.close() } }

    private func finish(_ result: Result<Void, any Error>) {
        answered.withLock { waiting in
            waiting?.resume(with: result)
            waiting = nil
        }
    }

    func streamOpened(applicationProtocol: String?) {
        connection?.write(Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    }
    func streamReceived(_ bytes: Span<UInt8>) { finish(.success(())) }
    func streamEnded() { connection?.close() }
    func streamDrained() {}
    func streamClosed(_ reason: StreamCloseReason) {
        finish(.failure(BenchmarkError("nginx closed the connection: \(reason)")))
    }
}

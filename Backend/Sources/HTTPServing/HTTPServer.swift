package import EventLoops
import Glibc
import HTTPMessages
package import PushTelemetry
import Synchronization
package import TLSTransport

/// What a server reports about itself.
struct ServerEvents: Sendable {
    let log: Log
    let counters: Counters
    /// The `Date` header, from the service's clock.
    let httpDate: @Sendable () -> String

    func refused(_ status: Int, _ reason: String) {
        counters.add("http_requests_refused_total")
        log.debug("request_refused", ["status": .number(status), "reason": .string(reason)])
    }
}

/// A listening address whose connections speak plain HTTP/1.1, TLS with HTTP/1.1 or HTTP/2, and HTTP/2 in clear:
/// the first bytes tell.
package final class HTTPServer: Sendable {
    private let context: ServerContext
    private let loops: [ServerLoop]
    private let acceptor: Acceptor
    private let log: Log

    /// - Parameters:
    ///   - asksForCertificate: Any certificate of a client is taken, and its hash shown to the handler.
    ///   - farewell: The debug data of GOAWAY when the server stops (RFC 9113 section 6.8).
    package init(
        limits: ServerLimits = ServerLimits(),
        tls: TLSContext? = nil,
        log: Log,
        counters: Counters,
        httpDate: @escaping @Sendable () -> String,
        trustedProxies: Set<String> = [],
        asksForCertificate: Bool = false,
        farewell: [UInt8] = [],
        group: EventLoopGroup = .shared,
        handler: @escaping HTTPHandler
    ) {
        context = ServerContext(
            limits: limits,
            handler: handler,
            events: ServerEvents(log: log, counters: counters, httpDate: httpDate),
            trustedProxies: trustedProxies,
            asksForCertificate: asksForCertificate,
            farewell: farewell
        )
        self.log = log
        let context = context
        loops = group.loops.map { ServerLoop(on: $0, context: context) }
        acceptor = Acceptor(
            loops: loops,
            tls: tls,
            log: log,
            counters: counters,
            connectionCountMax: limits.connectionCountMax
        )
    }

    /// Binds and begins to accept. Port 0 takes a free one.
    /// - Returns: The port.
    package func start(host: String, port: Int) throws(SystemError) -> Int {
        guard let address = SocketAddress(host: host == "localhost" ? "127.0.0.1" : host, port: port) else {
            throw SystemError(code: -EINVAL, call: "listen on \(host):\(port)")
        }
        return try acceptor.start(try address.listen())
    }

    /// Takes what waits in the kernel's queue, stops accepting, finishes what is under way, and returns when every
    /// connection is gone or `deadline` has passed.
    package func drain(within deadline: Duration = .seconds(10)) async {
        await acceptor.stop()
        await withDiscardingTaskGroup { group in
            for loop in loops { group.addTask { await loop.drain(within: deadline) } }
        }
    }

    /// New connections get these certificates; those that are open keep theirs.
    package func replace(tls: TLSContext) { acceptor.replace(tls: tls) }

    /// Bytes that wait for the peers to read them: of all connections now, and the most that one connection ever had.
    package func queuedByteCounts() async -> (now: Int, peak: Int) {
        var (now, peak) = (0, 0)
        for loop in loops {
            let counts = await loop.queuedByteCounts()
            now += counts.now
            peak = max(peak, counts.peak)
        }
        return (now, peak)
    }

    /// Open connections.
    package var connectionCount: Int { loops.reduce(0) { $0 + $1.connectionCount.load(ordering: .relaxed) } }
}

/// The connections of one loop. Loop-confined but for the count.
final class ServerLoop: @unchecked Sendable {
    let loop: EventLoop
    private let context: ServerContext
    private var connections: [ObjectIdentifier: ServerConnection] = [:]
    let connectionCount = Atomic<Int>(0)
    private var sweeper: LoopTimer?
    private var lastSweep: UInt64 = 0
    private var hasWaited = false
    private var whenEmpty: (() -> Void)?
    /// Of connections that are gone.
    private var pendingByteCountPeak = 0

    init(on loop: EventLoop, context: ServerContext) {
        self.loop = loop
        self.context = context
    }

    /// Takes over an accepted descriptor.
    func add(_ descriptor: Int32, tls: TLSContext?) {
        connectionCount.wrappingAdd(1, ordering: .relaxed)
        loop.execute { [self] in
            if sweeper == nil {
                sweeper = LoopTimer(
                    on: loop,
                    after: context.limits.sweepInterval,
                    every: context.limits.sweepInterval
                ) {
                    [weak self] in self?.sweep()
                }
            }
            do throws(SystemError) {
                let stream = try StreamConnection(
                    descriptor: descriptor,
                    role: .server(tls, asksForCertificate: context.asksForCertificate),
                    on: loop
                )
                let connection = ServerConnection(stream: stream, context: context, owner: self)
                connections[ObjectIdentifier(connection)] = connection
                stream.start(connection)
            } catch {
                connectionCount.wrappingSubtract(1, ordering: .relaxed)
                context.events.log.warning("connection_failed", ["reason": .string(error.description)])
            }
        }
    }

    func remove(_ connection: ServerConnection) {
        connections[ObjectIdentifier(connection)] = nil
        pendingByteCountPeak = max(pendingByteCountPeak, connection.stream.pendingByteCountPeak)
        connectionCount.wrappingSubtract(1, ordering: .relaxed)
        if connections.isEmpty { whenEmpty?() }
    }

    func queuedByteCounts() async -> (now: Int, peak: Int) {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                continuation.resume(
                    returning: connections.values.reduce((0, pendingByteCountPeak)) {
                        ($0.0 + $1.stream.pendingByteCount, max($0.1, $1.stream.pendingByteCountPeak))
                    }
                )
            }
        }
    }

    private func sweep() {
        let now = loop.nowMilliseconds
        let isLate = now >= lastSweep + 2 * context.limits.sweepInterval.wholeMilliseconds
        lastSweep = now
        // A loop that comes late to its timers comes late to its sockets too: what has arrived meanwhile is read first. Once: a loop
        // that is always late still has deadlines.
        hasWaited = isLate && !hasWaited
        if hasWaited { return }
        for connection in connections.values where now >= connection.stream.deadline { connection.timedOut() }
    }

    func drain(within deadline: Duration) async {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                var cutOff: LoopTimer?
                let finish = { [self] in
                    whenEmpty = nil
                    cutOff?.cancel()
                    cutOff = nil
                    sweeper?.cancel()
                    sweeper = nil
                    continuation.resume()
                }
                if connections.isEmpty { return finish() }
                whenEmpty = finish
                cutOff = LoopTimer(on: loop, after: deadline) { [self] in
                    for connection in connections.values { connection.stream.close() }
                }
                for connection in connections.values { connection.drain() }
            }
        }
    }
}

/// Accepts on one loop and deals the descriptors out. Loop-confined.
private final class Acceptor: @unchecked Sendable {
    private let loops: [ServerLoop]
    private var tls: TLSContext?
    private let log: Log
    private let counters: Counters
    private let connectionCountMax: Int
    private var poll: SocketPoll?
    private var retry: LoopTimer?
    private var nextLoop = 0
    private var isExhausted = false
    private var loop: EventLoop { loops[0].loop }
    /// Descriptors run out or the table is full: accepting pauses for so long.
    private static let retryDelay = Duration.milliseconds(200)

    init(loops: [ServerLoop], tls: TLSContext?, log: Log, counters: Counters, connectionCountMax: Int) {
        self.loops = loops
        self.tls = tls
        self.log = log
        self.counters = counters
        self.connectionCountMax = connectionCountMax
    }

    func start(_ descriptor: Int32) throws(SystemError) -> Int {
        let port = SocketAddress.localPort(of: descriptor)
        loop.execute { [self] in
            do throws(SystemError) {
                let poll = try SocketPoll(descriptor: descriptor, on: loop)
                poll.onReady = { [weak self] _, _ in self?.accept() }
                poll.watch(readable: true, writable: false)
                self.poll = poll
            } catch { log.error("listen_failed", ["reason": .string(error.description)]) }
        }
        return port
    }

    func replace(tls: TLSContext) { loop.execute { self.tls = tls } }

    func stop() async {
        await withCheckedContinuation { continuation in
            loop.execute { [self] in
                accept()
                // A child that is between fork and exec holds the socket as well: closing alone would leave it listening.
                if let poll { shutdown(poll.descriptor, Int32(SHUT_RDWR)) }
                poll?.close()
                poll = nil
                retry?.cancel()
                retry = nil
                continuation.resume()
            }
        }
    }

    private func accept() {
        guard let poll else { return }
        while true {
            let total = loops.reduce(0) { $0 + $1.connectionCount.load(ordering: .relaxed) }
            let descriptor = total < connectionCountMax ? Sockets.accept(poll.descriptor) : -EMFILE
            if descriptor >= 0 {
                if isExhausted {
                    isExhausted = false
                    log.info("accepting_resumed")
                }
                counters.add("http_connections_total")
                loops[nextLoop].add(descriptor, tls: tls)
                nextLoop = (nextLoop + 1) % loops.count
                continue
            }
            switch descriptor {
            case -EAGAIN: return
            case -ECONNABORTED: continue
            default: return pause(descriptor)
            }
        }
    }

    /// The kernel's queue holds the rest until there is room again.
    private func pause(_ code: Int32) {
        if !isExhausted {
            isExhausted = true
            log.error(
                "accepting_paused",
                [
                    "reason": .string(SystemError(code: code, call: "accept").description),
                    "connections_max": .number(connectionCountMax),
                ]
            )
        }
        counters.add("http_accept_pauses_total")
        poll?.watch(readable: false, writable: false)
        retry?.cancel()
        retry = LoopTimer(on: loop, after: Self.retryDelay) { [weak self] in
            self?.poll?.watch(readable: true, writable: false)
            self?.accept()
        }
    }
}

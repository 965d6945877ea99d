package import EventLoops
package import HTTPMessages
package import TLSTransport

/// Push connections to one origin for one credential: up to four HTTP/2 connections that stay open.
///
/// All state lives on one loop; `@unchecked Sendable` rests on that.
package final class HTTP2Pool: HTTP2Session.Owner, @unchecked Sendable {
    package static let connectionCountMax = 4
    package static let streamCountMaxPerConnection = 1000

    /// How often a request that the server did not process goes to another stream.
    static let resendCountMax = 3
    private static let redialDelayMin = Duration.milliseconds(100), redialDelayMax = Duration.seconds(10)

    private let origin: HTTPURL
    private let tls: TLSContext?
    private let loop: EventLoop
    private let requestTimeout: Duration
    private var sessions: [HTTP2Session] = []
    private var connectingCount = 0
    private var waiting: [HTTP2Exchange] = []
    private var nextWaiting = 0
    private var sweeper: LoopTimer?
    private var isClosed = false
    /// Connections in a row that answered nothing; the next one waits longer.
    private var failureCount = 0
    private var redial: LoopTimer?

    /// - Parameter origin: https, or http for a server that takes HTTP/2 in clear with prior knowledge.
    package init(
        origin: HTTPURL,
        tls: TLSContext?,
        requestTimeout: Duration = .seconds(20),
        on loop: EventLoop
    ) {
        self.origin = origin
        self.tls = origin.scheme == "https" ? tls : nil
        self.requestTimeout = requestTimeout
        self.loop = loop
    }

    /// Sends all requests, as many at a time as the server allows, and returns one result for each, in order.
    package func send(_ requests: [HTTP2Request]) async -> [HTTP2Result] {
        if requests.isEmpty { return [] }
        return await withCheckedContinuation { continuation in
            loop.execute { [self] in
                let batch = Batch(count: requests.count, continuation)
                guard !isClosed else {
                    for index in requests.indices {
                        batch.set(index, .failure(OutboundError(.unreachable, "the sender is closed")))
                    }
                    return
                }
                if sweeper == nil {
                    sweeper = LoopTimer(on: loop, after: .seconds(1), every: .seconds(1)) { [weak self] in
                        self?.sweep()
                    }
                }
                for (index, request) in requests.enumerated() {
                    let exchange = HTTP2Exchange(request, timeout: requestTimeout) { batch.set(index, $0) }
                    exchange.deadline = loop.nowMilliseconds + exchange.timeout
                    waiting.append(exchange)
                }
                pump()
            }
        }
    }

    /// Ends the connections, after what is under way.
    package func close() {
        loop.execute { [self] in
            isClosed = true
            sweeper?.cancel()
            sweeper = nil
            for session in sessions { session.close() }
            failWaiting(OutboundError(.unreachable, "the sender is closed"))
        }
    }

    private func sweep() {
        let now = loop.nowMilliseconds
        for session in sessions { session.sweep(now: now) }
        let expired = waiting[nextWaiting...].filter { now >= $0.deadline }
        if !expired.isEmpty {
            waiting = waiting[nextWaiting...].filter { now < $0.deadline }
            nextWaiting = 0
            for exchange in expired { exchange.fail(.unreachable, "no room on a connection in time") }
        }
        pump()
    }

    private var waitingCount: Int { waiting.count - nextWaiting }

    private func pump() {
        while waitingCount > 0, let session = sessions.max(by: { $0.capacity < $1.capacity }),
            session.capacity > 0
        {
            let exchange = waiting[nextWaiting]
            nextWaiting += 1
            session.start(exchange)
        }
        if nextWaiting == waiting.count {
            waiting = []
            nextWaiting = 0
        } else if nextWaiting >= max(1024, waiting.count / 2) {
            // While sends follow each other it is never empty; what was sent must not be held until then.
            waiting.removeFirst(nextWaiting)
            nextWaiting = 0
        }
        // One connection first; more only while requests wait that the ready ones have no room for.
        if waitingCount > 0, connectingCount == 0, redial == nil, sessions.count < Self.connectionCountMax {
            guard failureCount > 0 else { return connect() }
            let delay = min(Self.redialDelayMax, Self.redialDelayMin * (1 << min(failureCount, 10)))
            redial = LoopTimer(on: loop, after: delay) { [weak self] in
                self?.redial = nil
                self?.connect()
            }
        }
    }

    private func connect() {
        guard !isClosed else { return failWaiting(OutboundError(.unreachable, "the sender is closed")) }
        connectingCount += 1
        let session = HTTP2Session(owner: self, scheme: origin.scheme, authority: origin.authority)
        let carried = LoopBound(session)
        Task(executorPreference: loop) { [self] in
            do {
                try await loop.connect(
                    host: origin.host,
                    port: origin.port,
                    tls: tls,
                    handler: { carried.value },
                    attach: { _, connection in carried.value.attach(connection) }
                )
                loop.execute { [self] in
                    // It may have ended in the turn before this one.
                    if carried.value.hasEnded { return }
                    sessions.append(carried.value)
                    if isClosed { carried.value.close() }
                }
            } catch {
                let reason = String(describing: error)
                loop.execute { [self] in
                    connectingCount -= 1
                    guard sessions.isEmpty else { return }
                    failWaiting(OutboundError(.unreachable, "cannot connect to \(origin.origin): \(reason)"))
                }
            }
        }
    }

    private func failWaiting(_ error: OutboundError) {
        let failed = waiting[nextWaiting...]
        waiting = []
        nextWaiting = 0
        for exchange in failed { exchange.fail(error.kind, error.description) }
    }

    func resend(_ exchange: HTTP2Exchange) {
        waiting.append(exchange)
        pump()
    }

    func sessionCanTakeMore(_ session: HTTP2Session) {
        if !session.hasReportedReady {
            session.hasReportedReady = true
            connectingCount -= 1
        }
        pump()
    }

    func sessionEnded(
        _ session: HTTP2Session,
        unsent: [HTTP2Exchange],
        reason: StreamCloseReason,
        wasUsable: Bool
    ) {
        sessions.removeAll { $0 === session }
        if !session.hasReportedReady {
            session.hasReportedReady = true
            connectingCount -= 1
        }
        failureCount = wasUsable ? 0 : failureCount + 1
        for exchange in unsent { exchange.rewind() }
        waiting.append(contentsOf: unsent)
        if !wasUsable, sessions.isEmpty {
            failWaiting(OutboundError(.unreachable, "no HTTP/2 connection to \(origin.origin): \(reason)"))
        }
        pump()
    }
}

/// Gathers the results of one call. Loop-confined.
private final class Batch {
    private var results: [HTTP2Result?]
    private var left: Int
    private let continuation: CheckedContinuation<[HTTP2Result], Never>

    init(count: Int, _ continuation: CheckedContinuation<[HTTP2Result], Never>) {
        results = Array(repeating: nil, count: count)
        left = count
        self.continuation = continuation
    }

    func set(_ index: Int, _ result: HTTP2Result) {
        results[index] = result
        left -= 1
        if left == 0 { continuation.resume(returning: results.compactMap { $0 }) }
    }
}

/// Carries something that belongs to a loop through code that runs elsewhere and does not touch it.
private struct LoopBound<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

import CTidingsUV
package import EventLoops
import Glibc

/// Why a connection is over.
package enum StreamCloseReason: Equatable, Sendable, CustomStringConvertible {
    /// We closed it.
    case closedHere
    /// The peer ended the stream.
    case ended
    /// It took longer than its deadline.
    case deadline
    case failed(String)

    package var description: String {
        switch self {
        case .closedHere: "closed here"
        case .ended: "the peer closed the connection"
        case .deadline: "timed out"
        case .failed(let reason): reason
        }
    }
}

/// What a connection tells its owner, on the loop.
package protocol StreamConnectionHandler: AnyObject {
    /// The connection, and TLS where it applies, is up. `applicationProtocol` is ALPN's.
    func streamOpened(applicationProtocol: String?)
    /// Bytes arrived. They are valid during the call only.
    func streamReceived(_ bytes: Span<UInt8>)
    /// The peer will send no more. The default closes.
    func streamEnded()
    /// Everything that was written is with the kernel.
    func streamDrained()
    /// Called exactly once, last.
    func streamClosed(_ reason: StreamCloseReason)
}

/// One TCP or Unix stream connection, plain or TLS, confined to a loop.
///
/// Writes collect and leave once at the end of the loop's turn. Reading stops while ``isReadingPaused``.
/// `@unchecked Sendable` rests on the confinement: every method but `init` is for the loop's thread.
package final class StreamConnection: @unchecked Sendable {
    /// Reads in one turn before other connections get theirs.
    private static let readCountMaxPerTurn = 16
    /// What one `SSL_write` takes: a full TLS record.
    private static let recordByteCount = 16 << 10

    package enum Role {
        /// Accepted. TLS when the first byte is a TLS handshake and there is a context, else plain.
        /// - Parameter asksForCertificate: Any certificate of the client is taken, and shown as ``peerCertificateHash``.
        case server(TLSContext?, asksForCertificate: Bool = false)
        /// Connected by us; TLS with a context, checked for `host`.
        case client(TLSContext?, host: String)
    }

    package let loop: EventLoop
    /// Strong until the connection is closed; the handler owns the connection's life.
    private var handler: (any StreamConnectionHandler)?
    private let poll: SocketPoll
    private var tls: TLSConnection?
    private var role: Role
    private enum State { case deciding, handshaking, open, closed }
    private var state: State
    private var output: [UInt8] = []
    private var outputStart = 0
    private var isFlushScheduled = false
    private var closesWhenDrained = false
    private var sawEnd = false
    private var lingers = false
    private var isLingering = false
    private static let lingerTime = UInt64(1000)
    /// TLS may need the other direction (renegotiation aside, during handshakes).
    private var tlsWantsWrite = false
    /// The loop time in milliseconds at which ``checkDeadline(now:)`` closes the connection.
    package var deadline = UInt64.max

    /// True once TLS is up on it.
    package private(set) var isEncrypted = false

    package var isReadingPaused = false {
        didSet {
            guard oldValue != isReadingPaused else { return }
            updateInterest()
            // TLS may hold decrypted bytes that no socket event announces.
            if !isReadingPaused { loop.inNextTurn { self.readable() } }
        }
    }

    /// SHA-256 of the certificate that the client showed; nothing is said about who signed it.
    package var peerCertificateHash: [UInt8]? { tls?.peerCertificateHash }

    /// The peer's numeric address, as of the first call; empty for a Unix socket.
    package private(set) lazy var peerAddress: String = {
        var text = [CChar](repeating: 0, count: 64)
        tidings_uv_peer_address(poll.descriptor, &text, text.count)
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }()

    /// Takes over a connected, not blocking descriptor, and closes it when this throws.
    package init(descriptor: Int32, role: Role, on loop: EventLoop) throws(SystemError) {
        self.loop = loop
        self.role = role
        poll = try SocketPoll(descriptor: descriptor, on: loop)
        state = .deciding
    }

    /// Begins to work for `handler`.
    package func start(_ handler: any StreamConnectionHandler) {
        self.handler = handler
        poll.onReady = { [unowned self] readable, writable in ready(readable, writable) }
        switch (state, role) {
        case (.deciding, .server(nil, _)): open()
        case (.deciding, .client(nil, _)): open()
        case (.deciding, .client): startTLS()
        default: break
        }
        updateInterest()
    }

    package var isOpen: Bool { state == .open }
    package var isClosed: Bool { state == .closed }
    /// Bytes that were written and not yet taken by the kernel.
    package var pendingByteCount: Int { output.count - outputStart }
    /// The most that ``pendingByteCount`` ever was.
    package private(set) var pendingByteCountPeak = 0

    /// Queues bytes; they leave at the end of the turn.
    package func write(_ bytes: [UInt8]) {
        guard state != .closed, !isLingering else { return }
        if output.isEmpty { output = bytes } else { output += bytes }
        pendingByteCountPeak = max(pendingByteCountPeak, pendingByteCount)
        scheduleFlush()
    }

    package func write(_ bytes: UnsafeRawBufferPointer) {
        guard state != .closed else { return }
        output.append(contentsOf: bytes)
        pendingByteCountPeak = max(pendingByteCountPeak, pendingByteCount)
        scheduleFlush()
    }

    /// Closes after everything written so far has left, or at the deadline.
    package func closeWhenDrained() {
        guard state == .open else { return close() }
        closesWhenDrained = true
        scheduleFlush()
    }

    /// Like ``closeWhenDrained()``, but takes and drops what the peer still sends for a moment: a close with unread input
    /// would reset the connection, and the peer could lose the answer.
    package func closeLingering() {
        lingers = true
        closeWhenDrained()
    }

    package func close(_ reason: StreamCloseReason = .closedHere) {
        guard state != .closed else { return }
        tls?.sendCloseNotify()
        state = .closed
        poll.close()
        tls = nil
        output = []
        outputStart = 0
        guard let handler else { return }
        self.handler = nil
        // Never from inside a call of the handler's: its state would change under its feet.
        let closed = ClosedCall(handler: handler, reason: reason)
        loop.execute { closed.handler.streamClosed(closed.reason) }
    }

    /// Closes the connection when its deadline has passed.
    package func checkDeadline(now: UInt64) {
        if now >= deadline { close(.deadline) }
    }

    private func scheduleFlush() {
        guard !isFlushScheduled, state == .open else { return }
        isFlushScheduled = true
        loop.atTurnEnd { [self] in
            isFlushScheduled = false
            flush()
        }
    }

    private func ready(_ readable: Bool, _ writable: Bool) {
        switch state {
        case .deciding: decide()
        case .handshaking: handshake()
        case .open:
            if writable { flush() }
            if readable { self.readable() }
        case .closed: break
        }
    }

    /// The first byte of a TLS connection is a handshake record (RFC 8446 section 5.1: 22).
    private func decide() {
        guard case .server(let context, _) = role else { return }
        let first = tidings_uv_peek(poll.descriptor)
        if first == -EAGAIN { return }
        if first < 0 {
            return close(
                first == -1000 ? .ended : .failed(SystemError(code: first, call: "recv").description)
            )
        }
        if first == 22, context != nil { return startTLS() }
        open()
        if state == .open { readable() }
    }

    private func startTLS() {
        do throws(TLSError) {
            switch role {
            case .server(.some(let context), let asks):
                tls = try TLSConnection(
                    server: context,
                    descriptor: poll.descriptor,
                    asksForCertificate: asks
                )
            case .client(.some(let context), let host):
                tls = try TLSConnection(client: context, descriptor: poll.descriptor, host: host)
            default: return
            }
            state = .handshaking
            handshake()
        } catch { close(.failed(error.description)) }
    }

    private func handshake() {
        guard let progress = tls?.handshake() else { return }
        switch progress {
        case .done:
            tlsWantsWrite = false
            isEncrypted = true
            open(applicationProtocol: tls?.applicationProtocol)
            updateInterest()
            if state == .open { readable() }
        case .wantsRead, .wantsWrite:
            tlsWantsWrite = progress == .wantsWrite
            updateInterest()
        case .ended: close(.ended)
        case .failed(let reason): close(.failed(reason))
        }
    }

    private func open(applicationProtocol: String? = nil) {
        state = .open
        tidings_uv_no_delay(poll.descriptor)
        updateInterest()
        handler?.streamOpened(applicationProtocol: applicationProtocol)
        if pendingByteCount > 0 || closesWhenDrained { scheduleFlush() }
    }

    private func updateInterest() {
        switch state {
        case .deciding: poll.watch(readable: true, writable: false)
        case .handshaking: poll.watch(readable: !tlsWantsWrite, writable: tlsWantsWrite)
        case .open:
            poll.watch(
                readable: !isReadingPaused && !sawEnd,
                writable: pendingByteCount > 0 && !isFlushScheduled
            )
        case .closed: break
        }
    }

    private func readable() {
        let buffer = loop.readBuffer
        for _ in 0..<Self.readCountMaxPerTurn {
            guard state == .open, !isReadingPaused, !sawEnd else { return }
            switch readOnce(buffer) {
            case .done(let count):
                if isLingering { continue }
                let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                handler?.streamReceived(bytes.bindMemory(to: UInt8.self).span)
                // A short read of a plain socket emptied it; TLS must be asked until it wants more.
                if tls == nil, count < buffer.count { return }
            case .wantsRead, .wantsWrite: return
            case .ended:
                sawEnd = true
                updateInterest()
                if isLingering { return close() }
                handler?.streamEnded()
                return
            case .failed(let reason): return close(.failed(reason))
            }
        }
        loop.inNextTurn { self.readable() }
    }

    private func readOnce(_ buffer: UnsafeMutableRawBufferPointer) -> TLSConnection.Progress {
        if let progress = tls?.read(into: buffer) { return progress }
        guard let base = buffer.baseAddress else { return .wantsRead }
        let count = tidings_uv_recv(poll.descriptor, base, buffer.count)
        switch count {
        case 1...: return .done(count)
        case 0: return .ended
        case Int(-EAGAIN): return .wantsRead
        default: return .failed(SystemError(code: Int32(clamping: count), call: "recv").description)
        }
    }

    private func flush() {
        guard state == .open else { return }
        while pendingByteCount > 0 {
            let progress = output.withUnsafeBytes { bytes in
                writeOnce(UnsafeRawBufferPointer(rebasing: bytes[outputStart...]))
            }
            switch progress {
            case .done(let count): outputStart += count
            case .wantsRead, .wantsWrite:
                // Long queues are moved down rarely, so that a slow reader costs no quadratic copying.
                if outputStart > 1 << 20 {
                    output.removeFirst(outputStart)
                    outputStart = 0
                }
                return updateInterest()
            case .ended: return close(.ended)
            case .failed(let reason): return close(.failed(reason))
            }
        }
        output = []
        outputStart = 0
        updateInterest()
        if closesWhenDrained {
            if lingers, !sawEnd, !isLingering { return beginLingering() }
            return close()
        }
        handler?.streamDrained()
    }

    private func beginLingering() {
        isLingering = true
        tls?.sendCloseNotify()
        tidings_uv_shutdown_writing(poll.descriptor)
        deadline = min(deadline, loop.nowMilliseconds + Self.lingerTime)
        isReadingPaused = false
        updateInterest()
    }

    private func writeOnce(_ bytes: UnsafeRawBufferPointer) -> TLSConnection.Progress {
        if tls != nil {
            let record = UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.recordByteCount))
            return tls?.write(record) ?? .ended
        }
        guard let base = bytes.baseAddress else { return .done(0) }
        let count = tidings_uv_send(poll.descriptor, base, bytes.count)
        if count >= 0 { return .done(count) }
        if count == Int(-EAGAIN) { return .wantsWrite }
        return .failed(SystemError(code: Int32(clamping: count), call: "send").description)
    }
}

extension StreamConnectionHandler {
    package func streamDrained() {}
}

/// Carries the last call to the handler; made and used on the loop.
private struct ClosedCall: @unchecked Sendable {
    let handler: any StreamConnectionHandler
    let reason: StreamCloseReason
}

extension EventLoop {
    /// How long one address of a host may take before the next is tried.
    private static let connectTimeout = Duration.seconds(5)

    /// Connects to a host, trying its addresses in turn, and hands the connection to `handler` on this loop. TLS comes up
    /// afterwards; the handler hears of it.
    package func connect(
        host: String,
        port: Int,
        tls: TLSContext?,
        handler: @escaping @Sendable () -> any StreamConnectionHandler,
        attach: @escaping @Sendable (any StreamConnectionHandler, StreamConnection) -> Void
    ) async throws {
        var failure: any Error = SystemError(code: -EADDRNOTAVAIL, call: "connect")
        for address in try await resolve(host: host, port: port) {
            let descriptor: Int32
            do { descriptor = try await connected(address) } catch {
                failure = error
                continue
            }
            return try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                execute {
                    do throws(SystemError) {
                        let connection = try StreamConnection(
                            descriptor: descriptor,
                            role: .client(tls, host: host),
                            on: self
                        )
                        let owner = handler()
                        attach(owner, connection)
                        connection.start(owner)
                        continuation.resume()
                    } catch { continuation.resume(throwing: error) }
                }
            }
        }
        throw failure
    }

    /// A descriptor whose TCP connection is up.
    private func connected(_ address: SocketAddress) async throws -> Int32 {
        try await withCheckedThrowingContinuation { continuation in
            execute { [self] in
                do throws(SystemError) {
                    let poll = try SocketPoll(descriptor: try address.connect(), on: self)
                    let timer = LoopTimer(on: self, after: Self.connectTimeout) {
                        poll.close()
                        continuation.resume(throwing: SystemError(code: -ETIMEDOUT, call: "connect"))
                    }
                    poll.onReady = { _, _ in
                        timer.cancel()
                        let code = tidings_uv_socket_error(poll.descriptor)
                        if code == 0 { return continuation.resume(returning: poll.release()) }
                        poll.close()
                        continuation.resume(throwing: SystemError(code: code, call: "connect"))
                    }
                    poll.watch(readable: false, writable: true)
                } catch { continuation.resume(throwing: error) }
            }
        }
    }
}

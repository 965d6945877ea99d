import EventLoops
import HTTPMessages
import PushTelemetry
import TLSTransport
import WebSocketFraming

/// What the protocols on a connection need from the server. Loop-confined like them.
struct ServerContext: Sendable {
    let limits: ServerLimits
    let handler: HTTPHandler
    let events: ServerEvents
    let trustedProxies: Set<String>
    let asksForCertificate: Bool
    let farewell: [UInt8]

    /// Who a request comes from: behind trusted proxies the last address of `X-Forwarded-For` that is not one of them. What
    /// stands before it was written by the client.
    func clientAddress(_ peer: String, _ fields: HTTPFields) -> String {
        guard trustedProxies.contains(peer) else { return peer }
        let hops = fields.all("X-Forwarded-For").joined(separator: ",").split(separator: ",").map(
            ASCII.trimmed
        )
        let client = hops.last { !trustedProxies.contains($0) } ?? peer
        return client.utf8.count <= 64 ? client : peer
    }
}

/// One accepted connection: finds out which protocol it speaks and hands bytes to it.
///
/// Loop-confined; `@unchecked Sendable` lets a handler's task carry it back to the loop.
final class ServerConnection: StreamConnectionHandler, @unchecked Sendable {
    let stream: StreamConnection
    let context: ServerContext
    private weak var owner: ServerLoop?
    private var isDraining = false
    private let memory: ConnectionMemory?
    private enum Mode {
        case undecided([UInt8])
        case http1(HTTP1Connection)
        case http2(HTTP2Connection)
        case webSocket(WebSocketConnection)
    }
    private var mode = Mode.undecided([])

    /// The client connection preface (RFC 9113 section 3.4).
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    init(stream: StreamConnection, context: ServerContext, owner: ServerLoop) {
        self.stream = stream
        self.context = context
        self.owner = owner
        let limits = context.limits
        memory =
            limits.firstStreamCount == nil ? nil : ConnectionMemory(streamCountMax: limits.streamCountMax)
        stream.deadline = stream.loop.nowMilliseconds + context.limits.headTimeout.wholeMilliseconds
    }

    var scheme: String { stream.isEncrypted ? "https" : "http" }

    func streamOpened(applicationProtocol: String?) {
        switch applicationProtocol {
        case "h2": mode = .http2(HTTP2Connection(self))
        case "http/1.1": mode = .http1(HTTP1Connection(self))
        default: break
        }
    }

    func streamReceived(_ bytes: Span<UInt8>) {
        switch mode {
        case .undecided(var seen):
            for index in bytes.indices { seen.append(bytes[index]) }
            // Without ALPN the first bytes tell: aioapns offers none and begins with the preface.
            if seen.count < Self.preface.count, Self.preface.starts(with: seen) {
                mode = .undecided(seen)
                return
            }
            if seen.starts(with: Self.preface) {
                mode = .http2(HTTP2Connection(self))
            } else {
                mode = .http1(HTTP1Connection(self))
            }
            let span = seen.span
            forward(span)
            if isDraining { drain() }
        default: forward(bytes)
        }
    }

    private func forward(_ bytes: Span<UInt8>) {
        switch mode {
        case .undecided: break
        case .http1(let connection): connection.receive(bytes)
        case .http2(let connection): connection.receive(bytes)
        case .webSocket(let connection): connection.receive(bytes)
        }
    }

    func streamEnded() {
        switch mode {
        case .undecided: stream.close(.ended)
        case .http1(let connection): connection.inputEnded()
        case .http2, .webSocket: stream.close(.ended)
        }
    }

    func streamDrained() {
        switch mode {
        case .undecided: break
        case .http1(let connection): connection.drained()
        case .http2(let connection): connection.drained()
        case .webSocket(let connection): connection.drained()
        }
    }

    func streamClosed(_ reason: StreamCloseReason) {
        switch mode {
        case .undecided: break
        case .http1(let connection): connection.closed()
        case .http2(let connection): connection.closed()
        case .webSocket(let connection): connection.closed()
        }
        mode = .undecided([])
        owner?.remove(self)
        if reason == .deadline { context.events.counters.add("http_connections_timed_out_total") }
    }

    /// The connection becomes a WebSocket; `rest` arrived behind the handshake.
    func become(_ acceptance: WebSocketAcceptance, rest: [UInt8]) {
        let connection = WebSocketConnection(stream, acceptance, limits: context.limits)
        mode = .webSocket(connection)
        if !rest.isEmpty { connection.receive(rest.span) }
        if isDraining { connection.drain() }
    }

    /// The deadline has passed: an HTTP/1.1 request that is only half there hears why.
    func timedOut() {
        if case .http1(let connection) = mode, connection.refuseLate() { return }
        stream.close(.deadline)
    }

    /// Finishes what is under way and closes.
    func drain() {
        isDraining = true
        switch mode {
        case .undecided:
            // Accepted a moment ago: its request may be in the kernel already.
            isDraining = true
            stream.deadline = min(stream.deadline, stream.loop.nowMilliseconds + 1000)
        case .http1(let connection): connection.drain()
        case .http2(let connection): connection.drain()
        case .webSocket(let connection): connection.drain()
        }
    }

    /// Starts the handler for a request and calls `respond` on the loop.
    func handle(_ request: HTTPRequest, _ respond: @escaping @Sendable (HTTPResponse) -> Void) {
        let handler = context.handler
        var request = request
        if context.asksForCertificate { request.clientCertificateHash = stream.peerCertificateHash }
        request.connection = memory
        request.clientAddress = context.clientAddress(stream.peerAddress, request.fields)
        let received = request
        // Nobody waits for this task: its result goes to the connection, which may be gone by then.
        Task.immediate(executorPreference: stream.loop) {
            let response = await handler(received)
            respond(response)
        }
    }
}

/// A WebSocket on a server connection. Loop-confined.
final class WebSocketConnection {
    private let stream: StreamConnection
    private var decoder: WebSocketDecoder
    private var handler: (any WebSocketHandler)?
    private let writeTimeout: UInt64
    private static let pongByteCountMax = 64 << 10

    init(_ stream: StreamConnection, _ acceptance: WebSocketAcceptance, limits: ServerLimits) {
        self.stream = stream
        writeTimeout = limits.writeTimeout.wholeMilliseconds
        decoder = WebSocketDecoder(role: .server, messageByteCountMax: limits.webSocketMessageByteCountMax)
        stream.deadline = .max
        stream.isReadingPaused = false
        handler = acceptance.open(WebSocketChannel(stream, writeTimeout: limits.writeTimeout))
    }

    func receive(_ bytes: Span<UInt8>) {
        do throws(WebSocketError) {
            for event in try decoder.receive(bytes) {
                guard !stream.isClosed, let handler else { return }
                switch event {
                case .ping(let payload):
                    // Who pings and does not read the answers is cut off.
                    guard stream.pendingByteCount < Self.pongByteCountMax else {
                        return stream.close(.failed("pings without reading"))
                    }
                    if stream.pendingByteCount == 0 {
                        stream.deadline = stream.loop.nowMilliseconds + writeTimeout
                    }
                    stream.write(WebSocketEncoder.frame(.pong, payload))
                case .close(let code, _): return close(code == 1005 ? 1000 : code, "")
                case .text, .binary, .pong: handler.received(event)
                }
            }
        } catch {
            close(error.closeCode, error.reason)
        }
    }

    private func close(_ code: UInt16, _ reason: String) {
        stream.isReadingPaused = true
        stream.deadline = min(stream.deadline, stream.loop.nowMilliseconds + writeTimeout)
        stream.write(WebSocketEncoder.close(code, reason))
        stream.closeWhenDrained()
    }

    func drained() {
        stream.deadline = .max
        handler?.drained()
    }

    func drain() { handler?.serverIsStopping() }

    func closed() {
        handler?.closed()
        handler = nil
    }
}

package import DeviceLink
import EventLoops
package import HTTPMessages
import Synchronization
import TLSTransport
package import WebSocketFraming

/// A device on the autopush link, frame by frame. It answers nothing by itself, not even a ping.
package final class LinkPeer: Sendable {
    private let socket: Socket
    private let loop: EventLoop

    private init(_ socket: Socket, on loop: EventLoop) {
        self.socket = socket
        self.loop = loop
    }

    deinit { loop.execute { [socket] in socket.stream?.close(.ended) } }

    /// Returns once the gateway has taken the WebSocket.
    package static func connect(to gateway: HTTPURL) async throws -> LinkPeer {
        let loop = EventLoopGroup.shared.next()
        let socket = Socket(host: gateway.authority)
        try await Task(executorPreference: loop) {
            try await loop.connect(
                host: gateway.host,
                port: gateway.port,
                tls: nil,
                handler: { socket },
                attach: { _, stream in socket.stream = stream }
            )
        }.value
        let peer = LinkPeer(socket, on: loop)
        guard await socket.isUpgraded() else { throw WorldFailure("the gateway took no WebSocket") }
        return peer
    }

    /// Connects, says hello, and returns the answer beside the peer.
    package static func hello(
        to gateway: HTTPURL,
        uaid: String? = nil,
        broadcasts: [BroadcastID: String] = [:]
    ) async throws -> (peer: LinkPeer, answer: GatewayFrame) {
        let peer = try await connect(to: gateway)
        peer.send(.hello(uaid: uaid, broadcasts: broadcasts))
        return (peer, try await peer.nextFrame())
    }

    package func send(_ frame: DeviceFrame) { send(frame.text) }
    package func send(_ text: String) { write(WebSocketEncoder.frame(.text, Array(text.utf8), mask: mask)) }
    package func sendPong() { write(WebSocketEncoder.frame(.pong, [], mask: mask)) }
    private let mask: [UInt8] = [0, 0, 0, 0]
    private func write(_ bytes: [UInt8]) { loop.execute { [socket] in socket.stream?.write(bytes) } }

    /// What the gateway sends next, also its close; nil once the connection is gone.
    package func next() async -> WebSocketEvent? { await socket.next() }

    /// The next event, which must be a text frame.
    package func nextFrame() async throws -> GatewayFrame {
        let event = await next()
        guard case .text(let text)? = event else {
            throw WorldFailure("no frame but \(event.map { "\($0)" } ?? "the end")")
        }
        return try GatewayFrame(parsing: text)
    }
}

/// Loop-confined but for what has arrived.
private final class Socket: StreamConnectionHandler, @unchecked Sendable {
    private struct State {
        /// Nil until the upgrade is answered.
        var isUpgraded: Bool?
        var events: [WebSocketEvent] = []
        var isEnded = false
        /// One that waits for whatever comes.
        var waiter: CheckedContinuation<Void, Never>?
    }
    private let state = Mutex(State())
    private let host: String
    private var head: [UInt8]? = []
    private var decoder = WebSocketDecoder(role: .client, messageByteCountMax: 1 << 20)
    var stream: StreamConnection?

    init(host: String) { self.host = host }

    func isUpgraded() async -> Bool { await first { $0.isUpgraded ?? ($0.isEnded ? false : nil) } }

    func next() async -> WebSocketEvent? {
        await first { state in
            if !state.events.isEmpty { return .some(state.events.removeFirst()) }
            return state.isEnded ? .some(nil) : nil
        }
    }

    /// What `take` finds, once it finds something.
    private func first<Value: Sendable>(_ take: (inout State) -> Value?) async -> Value {
        while true {
            var found: Value?
            await withCheckedContinuation { continuation in
                found = state.withLock { state in
                    let value = take(&state)
                    if value == nil { state.waiter = continuation }
                    return value
                }
                if found != nil { continuation.resume() }
            }
            if let found { return found }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func streamOpened(applicationProtocol: String?) {
        stream?.write(
            Array(
                ("GET / HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").utf8
            )
        )
    }

    func streamReceived(_ bytes: Span<UInt8>) {
        var bytes = bytes.indices.map { bytes[$0] }
        if let head {
            bytes = head + bytes
            guard let end = bytes.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A]) else {
                self.head = bytes
                return
            }
            let isUpgraded = bytes.starts(with: Array("HTTP/1.1 101 ".utf8))
            self.head = nil
            bytes.removeSubrange(..<end.upperBound)
            change { $0.isUpgraded = isUpgraded }
        }
        let received = bytes
        do throws(WebSocketError) {
            let events = try decoder.receive(received.span)
            if !events.isEmpty { change { $0.events += events } }
        } catch { stream?.close(.failed(error.reason)) }
    }

    func streamEnded() { stream?.close(.ended) }

    func streamClosed(_ reason: StreamCloseReason) {
        stream = nil
        change { $0.isEnded = true }
    }
}

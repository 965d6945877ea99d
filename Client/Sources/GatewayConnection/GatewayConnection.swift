package import DeviceLink
package import EventLoops
package import HTTPMessages
import PushTelemetry
package import TLSTransport
package import TidingsModels
import WebSocketFraming

/// The device's side of the link: dials, says hello, registers, receives, acknowledges, and dials again when the
/// connection is lost.
///
/// All state lives on one loop, which `@unchecked Sendable` rests on; the methods may be called from anywhere.
package final class GatewayConnection: @unchecked Sendable {
    /// From dialling to the answer to hello.
    private static let openTimeout = Duration.seconds(15)
    /// A WebSocket ping after so much silence, and the time that any frame then has to arrive.
    private static let pingAfter = Duration.seconds(120)
    private static let pongDeadline = Duration.seconds(10)

    /// The events, once. They end after ``stop()``.
    package let events: AsyncStream<GatewayEvent>
    private let continuation: AsyncStream<GatewayEvent>.Continuation
    private let url: HTTPURL
    private let tls: TLSContext?
    private let loop: EventLoop
    private let policy: ReconnectPolicy
    private let jitter: @Sendable () -> Double

    private var uaid: String?
    private var socket: WebSocketClient?
    private var isIdentified = false
    private var failureCount = 0
    private var isStopped = false
    private var timer: LoopTimer?
    /// Requests without an answer; sent again after a reconnect, since the gateway answers them alike.
    private var pendingRegistrations: [(channelID: String, platform: Platform?, key: String?)] = []
    private var pendingUnregistrations: [String] = []

    /// - Parameters:
    ///   - url: `https://…` for wss, `http://…` for ws.
    ///   - uaid: What the gateway called this device before.
    ///   - jitter: Draws from `0..<1`.
    package init(
        url: HTTPURL,
        tls: TLSContext?,
        uaid: String?,
        policy: ReconnectPolicy = ReconnectPolicy(),
        on loop: EventLoop = EventLoopGroup.shared.next(),
        jitter: @escaping @Sendable () -> Double
    ) {
        self.url = url
        self.tls = url.scheme == "https" ? tls : nil
        self.uaid = uaid
        self.policy = policy
        self.loop = loop
        self.jitter = jitter
        (events, continuation) = AsyncStream.makeStream(of: GatewayEvent.self)
    }

    package func start() { loop.execute { [self] in dial() } }

    /// Closes for good.
    package func stop() {
        loop.execute { [self] in
            isStopped = true
            timer?.cancel()
            timer = nil
            socket?.close(1000)
            socket = nil
            continuation.finish()
        }
    }

    /// Asks for the handle of a channel; the answer is an event.
    ///
    /// - Parameters:
    ///   - platform: Nil for Web Push.
    ///   - key: Web Push: the application server that may send, base64url.
    package func register(channelID: String, platform: Platform?, key: String? = nil) {
        loop.execute { [self] in
            pendingRegistrations.removeAll { $0.channelID == channelID }
            pendingRegistrations.append((channelID, platform, key))
            if isIdentified { send(.register(channelID: channelID, key: key, platform: platform)) }
        }
    }

    package func unregister(channelID: String) {
        loop.execute { [self] in
            pendingRegistrations.removeAll { $0.channelID == channelID }
            pendingUnregistrations.append(channelID)
            if isIdentified { send(.unregister(channelID: channelID, code: 200)) }
        }
    }

    /// Tells the gateway that it may forget messages. Lost acknowledgements only bring a message again.
    package func acknowledge(_ acks: [DeviceFrame.Ack]) {
        loop.execute { [self] in if isIdentified { send(.ack(acks)) } }
    }

    /// Drops the connection and dials again, as a network change would.
    package func reconnect() { loop.execute { [self] in socket?.close(1001) } }

    private func send(_ frame: DeviceFrame) { socket?.send(frame.text) }

    private func dial() {
        guard !isStopped else { return }
        timer?.cancel()
        timer = LoopTimer(on: loop, after: Self.openTimeout) { [weak self] in
            self?.lost("no answer from the gateway in time")
        }
        let client = WebSocketClient(owner: self, url: url, on: loop)
        socket = client
        let (url, tls, loop) = (url, tls, loop)
        // The connection outlives the task: it is attached on the loop, or the failure is reported there.
        Task(executorPreference: loop) { [weak self] in
            do {
                try await loop.connect(
                    host: url.host,
                    port: url.port,
                    tls: tls,
                    handler: { client },
                    attach: { _, connection in client.attach(connection) }
                )
            } catch {
                let reason = String(describing: error)
                loop.execute { [weak self] in self?.lost(client, reason) }
            }
        }
    }

    // MARK: Socket events, on the loop

    fileprivate func opened(_ client: WebSocketClient) {
        guard client === socket else { return }
        send(.hello(uaid: uaid))
    }

    fileprivate func received(_ client: WebSocketClient, _ text: String) {
        guard client === socket else { return }
        schedulePing()
        do throws(LinkViolation) {
            switch try GatewayFrame(parsing: text) {
            case .hello(let uaid, _): identified(uaid)
            case .register(let channelID, let status, let endpoint):
                pendingRegistrations.removeAll { $0.channelID == channelID }
                continuation.yield(
                    status == 200
                        ? .registered(channelID: channelID, handle: endpoint)
                        : .registrationRefused(channelID: channelID, status: status, reason: endpoint)
                )
            case .unregister(let channelID, _):
                pendingUnregistrations.removeAll { $0 == channelID }
                continuation.yield(.unregistered(channelID: channelID))
            case .notification(let notification): continuation.yield(.notification(notification))
            // This device follows no broadcasts.
            case .broadcast, .pong: break
            }
        } catch {
            client.close(1002)
            lost("the gateway sent a frame that is not allowed: \(error.detail)")
        }
    }

    fileprivate func receivedAnything() { schedulePing() }

    fileprivate func lost(_ client: WebSocketClient, _ reason: String) {
        if client === socket { lost(reason) }
    }

    private func identified(_ uaid: String) {
        self.uaid = uaid
        isIdentified = true
        failureCount = 0
        schedulePing()
        continuation.yield(.connected(uaid: uaid))
        for request in pendingRegistrations {
            send(.register(channelID: request.channelID, key: request.key, platform: request.platform))
        }
        for channelID in pendingUnregistrations { send(.unregister(channelID: channelID, code: 200)) }
    }

    private func lost(_ reason: String) {
        let old = socket
        socket = nil
        old?.close(1001)
        isIdentified = false
        guard !isStopped else { return }
        continuation.yield(.disconnected(reason: reason))
        timer?.cancel()
        let delay = policy.delay(afterFailures: failureCount, jitter: jitter())
        failureCount += 1
        timer = LoopTimer(on: loop, after: delay) { [weak self] in self?.dial() }
    }

    /// Any frame proves the connection; silence is broken by a ping that must bring one.
    private func schedulePing() {
        guard isIdentified else { return }
        timer?.cancel()
        timer = LoopTimer(on: loop, after: Self.pingAfter) { [weak self] in
            guard let self else { return }
            self.socket?.ping()
            self.timer = LoopTimer(on: self.loop, after: Self.pongDeadline) { [weak self] in
                self?.lost("the gateway did not answer a ping")
            }
        }
    }
}

/// One WebSocket to the gateway. Loop-confined; `@unchecked Sendable` lets the dialling task carry it.
private final class WebSocketClient: StreamConnectionHandler, @unchecked Sendable {
    private weak var owner: GatewayConnection?
    private let url: HTTPURL
    private let loop: EventLoop
    private var connection: StreamConnection?
    private var decoder = WebSocketDecoder(role: .client, messageByteCountMax: 1 << 20)
    private var head: [UInt8]? = []
    private let key: String
    private var random = SystemRandomNumberGenerator()
    private var closeReason: String?
    private var isGivenUp = false

    init(owner: GatewayConnection, url: HTTPURL, on loop: EventLoop) {
        self.owner = owner
        self.url = url
        self.loop = loop
        var random = SystemRandomNumberGenerator()
        key = Base64.encode((0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    }

    func attach(_ connection: StreamConnection) {
        self.connection = connection
        // Given up while it was dialling.
        if isGivenUp { loop.execute { connection.close() } }
    }

    private var mask: [UInt8] { (0..<4).map { _ in UInt8.random(in: .min ... .max, using: &random) } }

    func send(_ text: String) {
        connection?.write(WebSocketEncoder.frame(.text, Array(text.utf8), mask: mask))
    }
    func ping() { connection?.write(WebSocketEncoder.frame(.ping, [], mask: mask)) }

    func close(_ code: UInt16) {
        isGivenUp = true
        guard let connection, !connection.isClosed else { return }
        if head == nil { connection.write(WebSocketEncoder.close(code, "", mask: mask)) }
        connection.closeWhenDrained()
    }

    func streamOpened(applicationProtocol: String?) {
        let request =
            "GET \(url.target) HTTP/1.1\r\nHost: \(url.authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: \(key)\r\nSec-WebSocket-Protocol: push-notification\r\n\r\n"
        connection?.write(Array(request.utf8))
    }

    func streamReceived(_ bytes: Span<UInt8>) {
        if var head {
            for index in bytes.indices { head.append(bytes[index]) }
            guard let end = head.firstRange(of: [0x0D, 0x0A, 0x0D, 0x0A]) else {
                self.head = head
                if head.count > 16 << 10 { fail("the answer to the upgrade is too long") }
                return
            }
            let rest = Array(head[end.upperBound...])
            let text = String(decoding: head[..<end.lowerBound], as: UTF8.self)
            self.head = nil
            guard accepts(text) else { return }
            owner?.opened(self)
            if !rest.isEmpty { receiveFrames(rest.span) }
            return
        }
        receiveFrames(bytes)
    }

    /// Checks the server's side of the handshake (RFC 6455 section 4.1).
    private func accepts(_ text: String) -> Bool {
        let lines = text.split(separator: "\r\n")
        guard let status = lines.first, status.hasPrefix("HTTP/1.1 101") else {
            fail("the gateway refused the WebSocket: \(lines.first ?? "no answer")")
            return false
        }
        var fields: HTTPFields = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields.append(String(line[..<colon]), ASCII.trimmed(line[line.index(after: colon)...]))
        }
        let expected = Base64.encode(
            HandshakeDigest.sha1(Array((key + HandshakeDigest.webSocketSuffix).utf8))
        )
        guard fields["Sec-WebSocket-Accept"] == expected, fields.has("websocket", in: "Upgrade") else {
            fail("the gateway's answer to the WebSocket handshake is wrong")
            return false
        }
        return true
    }

    private func receiveFrames(_ bytes: Span<UInt8>) {
        do throws(WebSocketError) {
            for event in try decoder.receive(bytes) {
                switch event {
                case .text(let text): owner?.received(self, text)
                case .ping(let payload): connection?.write(WebSocketEncoder.frame(.pong, payload, mask: mask))
                case .close(let code, let reason):
                    closeReason =
                        "the gateway closed the connection (\(code)\(reason.isEmpty ? "" : " \(reason)"))"
                    connection?.close(.ended)
                case .pong, .binary: break
                }
                owner?.receivedAnything()
            }
        } catch {
            fail("the gateway broke the WebSocket protocol: \(error.reason)")
        }
    }

    private func fail(_ reason: String) {
        closeReason = reason
        connection?.close(.failed(reason))
    }

    func streamEnded() { connection?.close(.ended) }

    func streamClosed(_ reason: StreamCloseReason) {
        connection = nil
        owner?.lost(self, closeReason ?? reason.description)
    }
}

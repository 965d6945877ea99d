package import EventLoops
package import HTTPMessages
import TLSTransport
package import WebSocketFraming

/// How a handler takes over a WebSocket. Called on the connection's loop.
package struct WebSocketAcceptance: Sendable {
    package let subprotocol: String?
    package let open: @Sendable (WebSocketChannel) -> any WebSocketHandler

    package init(
        subprotocol: String? = nil,
        open: @escaping @Sendable (WebSocketChannel) -> any WebSocketHandler
    ) {
        self.subprotocol = subprotocol
        self.open = open
    }
}

/// What a WebSocket tells its owner, on the loop.
package protocol WebSocketHandler: AnyObject {
    func received(_ event: WebSocketEvent)
    /// Everything that was sent is with the kernel.
    func drained()
    /// The server is stopping: close with 1001.
    func serverIsStopping()
    /// Called once, last.
    func closed()
}

/// The sending half of a WebSocket. For the loop's thread; `@unchecked Sendable` rests on that.
package final class WebSocketChannel: @unchecked Sendable {
    package let loop: EventLoop
    private let connection: StreamConnection
    private let writeTimeout: UInt64

    init(_ connection: StreamConnection, writeTimeout: Duration) {
        self.connection = connection
        self.writeTimeout = writeTimeout.wholeMilliseconds
        loop = connection.loop
    }

    /// Bytes that wait for the peer.
    package var pendingByteCount: Int { connection.pendingByteCount }

    /// Queues encoded frames; they leave at the end of the turn, together.
    package func send(frames: [UInt8]) {
        if connection.pendingByteCount == 0 { connection.deadline = loop.nowMilliseconds + writeTimeout }
        connection.write(frames)
    }

    /// Sends a close frame and ends the connection without waiting for the peer's: Firefox does not answer
    /// promptly, and starts its backoff only when the connection ends.
    package func close(_ code: UInt16, _ reason: String) {
        connection.isReadingPaused = true
        connection.deadline = min(connection.deadline, loop.nowMilliseconds + writeTimeout)
        connection.write(WebSocketEncoder.close(code, reason))
        connection.closeWhenDrained()
    }
}

/// The server's side of the opening handshake (RFC 6455 section 4.2).
package enum WebSocketHandshake {
    /// True when the client asks for a WebSocket.
    package static func isRequested(_ head: HTTPRequestHead) -> Bool {
        head.fields.has("websocket", in: "Upgrade") && head.fields.has("upgrade", in: "Connection")
    }

    /// The answer to a request: 101 with `acceptance`, or the refusal.
    package static func response(to head: HTTPRequestHead, _ acceptance: WebSocketAcceptance) -> HTTPResponse
    {
        guard head.method == "GET", head.version == .http11, isRequested(head) else {
            return HTTPResponse(
                426,
                [
                    "Upgrade": "websocket", "Connection": "Upgrade",
                    "Content-Type": "text/plain; charset=utf-8",
                ],
                text: "This address speaks WebSocket (RFC 6455) over HTTP/1.1.\n"
            )
        }
        guard head.fields["Sec-WebSocket-Version"] == "13" else {
            return HTTPResponse(
                426,
                ["Sec-WebSocket-Version": "13"],
                text: "Sec-WebSocket-Version must be 13.\n"
            )
        }
        let keys = head.fields.all("Sec-WebSocket-Key")
        guard keys.count == 1, Base64.decode(keys[0])?.count == 16 else {
            return HTTPResponse(400, text: "Sec-WebSocket-Key must be 16 bytes in base64.\n")
        }
        let accept = Base64.encode(
            HandshakeDigest.sha1(Array((keys[0] + HandshakeDigest.webSocketSuffix).utf8))
        )
        var response = HTTPResponse(
            101,
            ["Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept]
        )
        if let subprotocol = acceptance.subprotocol {
            response.fields["Sec-WebSocket-Protocol"] = subprotocol
        }
        response.webSocket = acceptance
        return response
    }
}

package import HTTPMessages

/// A request as a handler sees it.
package struct HTTPRequest: Sendable {
    package var head: HTTPRequestHead
    package var body: RequestBody
    /// The numeric address of whoever sent it: the connection's peer, or what a trusted proxy says about it. May be empty.
    package var clientAddress = ""
    /// SHA-256 of the certificate that the client showed, on a server that asks for one.
    package var clientCertificateHash: [UInt8]?
    /// Shared by the requests of a connection, on a server that begins with few streams.
    package var connection: ConnectionMemory?

    package init(head: HTTPRequestHead, body: RequestBody) {
        self.head = head
        self.body = body
    }

    package var method: String { head.method }
    package var target: RequestTarget { head.target }
    package var fields: HTTPFields { head.fields }
}

/// What a handler answers.
package struct HTTPResponse: Sendable {
    package enum Body: Sendable {
        case bytes([UInt8])
        /// Pieces that are asked for one after another; nil ends the body. Without a length HTTP/1.1 uses chunks.
        case stream(byteCount: Int?, next: @Sendable () async throws -> [UInt8]?)
    }

    package var status: HTTPStatus
    package var fields: HTTPFields
    package var body: Body
    /// Set to turn the connection into a WebSocket; the status is then 101.
    package var webSocket: WebSocketAcceptance?
    /// Nil in production, but for ``TransportFault/streamLimit(_:)`` on a server that begins with few streams.
    package var fault: TransportFault?

    package init(_ status: HTTPStatus, _ fields: HTTPFields = [:], body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = .bytes(body)
    }

    package init(_ status: HTTPStatus, _ fields: HTTPFields = [:], text: String) {
        self.init(status, fields, body: Array(text.utf8))
    }
}

/// Answers every request of a server. Runs on the loop that owns the connection until it suspends elsewhere.
package typealias HTTPHandler = @Sendable (HTTPRequest) async -> HTTPResponse

/// What came before the body of a request.
package struct HTTPRequestHead: Sendable, Equatable {
    package enum Version: Sendable, Equatable { case http10, http11, http2 }

    package var method: String
    package var target: RequestTarget
    package var fields: HTTPFields
    package var version: Version
    /// `https` when the connection is encrypted, else `http`.
    package var scheme: String
    /// `Host`, or `:authority`, without being checked against anything.
    package var authority: String

    package init(
        method: String,
        target: RequestTarget,
        fields: HTTPFields,
        version: Version,
        scheme: String,
        authority: String
    ) {
        self.method = method
        self.target = target
        self.fields = fields
        self.version = version
        self.scheme = scheme
        self.authority = authority
    }
}

/// A whole answer as a client sees it.
package struct HTTPAnswer: Sendable, Equatable {
    package var status: HTTPStatus
    package var fields: HTTPFields
    package var body: [UInt8]

    package init(status: HTTPStatus, fields: HTTPFields, body: [UInt8]) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// The seconds of an integer `Retry-After`; the date form is not used by any service we speak to.
    package var retryAfterSeconds: Int? {
        fields["Retry-After"].flatMap { Int($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }
}

package import HTTPMessages

/// A request that we send.
package struct OutboundRequest: Sendable {
    package var method: String
    package var url: HTTPURL
    package var fields: HTTPFields
    /// Nil sends no body; a POST then has `Content-Length: 0`.
    package var body: [UInt8]?
    /// From the start to the last byte of the answer.
    package var timeout: Duration = .seconds(30)
    /// Longer answers fail.
    package var answerByteCountMax = 16 << 20
    /// True: fails rather than connect to an address inside the network, whatever name led there. For addresses that clients name.
    package var refusesPrivateAddresses = false

    package init(_ method: String, _ url: HTTPURL, fields: HTTPFields = [:], body: [UInt8]? = nil) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
    }
}

/// No answer came.
package struct OutboundError: Error, Equatable, Sendable, CustomStringConvertible {
    package enum Kind: Sendable, Equatable {
        /// Nothing was sent: no address, no connection, no TLS. Sending again is safe.
        case unreachable
        /// It may have arrived.
        case interrupted
        case timeout
        /// The answer was too large or not HTTP.
        case badAnswer
    }

    package let kind: Kind
    package let description: String

    package init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }
}

/// Which certificate authorities a client believes: the machine's, and for named origins only the one given.
package struct OutboundTrust: Sendable, Equatable {
    /// PEM files by origin (`https://localhost:8082`); such an origin is checked against its file alone.
    package var authorityFiles: [String: String] = [:]

    package init(authorityFiles: [String: String] = [:]) { self.authorityFiles = authorityFiles }
}

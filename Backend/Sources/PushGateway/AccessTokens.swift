import HTTPMessages
import PushCredentials
package import TidingsModels

/// Opaque access tokens that need no table: purpose and expiry under a MAC.
package struct AccessTokens: Sendable {
    let key: [UInt8]

    package init(key: [UInt8]) { self.key = key }

    package func issue(_ purpose: String, expires: Timestamp) -> String {
        let text = "\(purpose)|\(expires.seconds)"
        return Base64.encodeURL(Array(text.utf8)) + "."
            + Base64.encodeURL(Digests.hmacSHA256(key: key, Array(text.utf8)))
    }

    enum State { case valid, expired, unknown }

    func isValid(_ token: String, for purpose: String, now: Timestamp) -> Bool {
        state(token, for: purpose, now: now) == .valid
    }

    /// Expired is a token of ours whose time is over.
    func state(_ token: String, for purpose: String, now: Timestamp) -> State {
        let parts = token.split(separator: ".")
        guard parts.count == 2, let text = Base64.decode(parts[0]), let mac = Base64.decode(parts[1]),
            Digests.equal(mac, Digests.hmacSHA256(key: key, text))
        else { return .unknown }
        let fields = String(decoding: text, as: UTF8.self).split(separator: "|")
        guard fields.count == 2, fields[0] == purpose, let end = Int64(fields[1]) else { return .unknown }
        return now.seconds < end ? .valid : .expired
    }

    /// The token of an `Authorization: Bearer` field.
    static func bearer(_ fields: HTTPFields) -> String? {
        guard let value = fields["Authorization"], value.lowercased().hasPrefix("bearer ") else { return nil }
        return ASCII.trimmed(value.dropFirst(7))
    }
}

package import HTTPMessages
import JSONBytes
package import TidingsModels

/// How an application server names itself to a push service (RFC 8292).
package enum VAPID {
    /// `exp` may be so far away at most (section 2).
    package static let lifeMax = Duration.seconds(86400)

    /// The value of `Authorization`: `vapid t=…, k=…`.
    ///
    /// - Parameters:
    ///   - audience: The origin of the push resource.
    ///   - subject: `mailto:` or `https:`, for the push service's people.
    package static func authorization(
        audience: String,
        subject: String,
        expires: Timestamp,
        key: SigningKey,
        point: [UInt8]
    ) throws(CredentialError) -> String {
        let token = try WebToken.sign(
            header: JSONObject(["typ": "JWT", "alg": "ES256"]),
            claims: JSONObject([
                "aud": .string(audience), "exp": .number(expires.seconds), "sub": .string(subject),
            ]),
            with: key
        )
        return "vapid t=\(token), k=\(Base64.encodeURL(point))"
    }

    /// What a request says about its sender; nothing of it is checked yet.
    package struct Claim: Sendable {
        package let token: WebToken
        /// The public key, 65 bytes.
        package let point: [UInt8]
    }

    /// Reads the headers of a push: the scheme `vapid` of RFC 8292, or `WebPush` and `Bearer` of its drafts with the key in
    /// `Crypto-Key`.
    ///
    /// - Returns: Nil when there is no `Authorization`.
    /// - Throws: ``CredentialError`` with what is wrong.
    package static func read(_ fields: HTTPFields) throws(CredentialError) -> Claim? {
        guard let value = fields["Authorization"] else { return nil }
        let parts = value.split(separator: " ", maxSplits: 1)
        let rest = parts.count == 2 ? String(parts[1]) : ""
        let tokenText: String?
        let keyText: String?
        switch parts.first?.lowercased() {
        case "vapid":
            let parameters = Parameters(rest)
            tokenText = parameters["t"]
            keyText = parameters["k"]
        case "webpush", "bearer":
            tokenText = ASCII.trimmed(rest[...])
            keyText = fields["Crypto-Key"].flatMap { Parameters($0)["p256ecdsa"] }
        default: throw CredentialError("the scheme of Authorization is not vapid")
        }
        guard let tokenText, let token = WebToken(tokenText) else {
            throw CredentialError("Authorization holds no JSON Web Token")
        }
        guard let keyText, let point = Base64.decode(keyText), point.count == P256KeyPair.pointByteCount
        else {
            throw CredentialError("the public key is missing, or not 65 bytes in base64url")
        }
        return Claim(token: token, point: point)
    }

    /// Name and value pairs between `,` or `;`, values perhaps quoted and padded: how `vapid`, `Encryption` and `Crypto-Key` write theirs.
    package struct Parameters: Sendable {
        private let pairs: [(name: String, value: String)]

        package init(_ text: String) {
            pairs = text.split { $0 == "," || $0 == ";" }.compactMap { part in
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2 else { return nil }
                var value = ASCII.trimmed(pair[1])[...]
                if value.hasPrefix("\""), value.hasSuffix("\""), value.utf8.count >= 2 {
                    value = value.dropFirst().dropLast()
                }
                while value.hasSuffix("=") { value = value.dropLast() }
                return (ASCII.trimmed(pair[0]).lowercased(), String(value))
            }
        }

        package subscript(name: String) -> String? { pairs.first { $0.name == name }?.value }
    }

    /// Checks a claim (RFC 8292 section 2).
    ///
    /// - Parameter audiences: The origins that the push service is reached by.
    /// - Throws: ``CredentialError`` with what is wrong.
    package static func check(
        _ claim: Claim,
        audiences: Set<String>,
        now: Timestamp
    ) throws(CredentialError) {
        let key = try SigningKey.p256(point: claim.point)
        guard claim.token.isSigned(by: key) else {
            throw CredentialError("the signature of the token is wrong")
        }
        let audience = claim.token.claims["aud"]?.stringValue ?? ""
        let origin = HTTPURL(audience)?.origin ?? audience
        guard audiences.contains(origin) else {
            throw CredentialError("the token's aud '\(audience)' is not the origin of this push service")
        }
        guard let expires = claim.token.seconds("exp") else { throw CredentialError("the token has no exp") }
        guard expires > now.seconds else {
            throw CredentialError("the token expired \(now.seconds - expires) seconds ago")
        }
        guard Timestamp(seconds: expires) <= now + lifeMax + .seconds(60) else {
            throw CredentialError("the token's exp is more than 24 hours away")
        }
    }
}

import HTTPMessages
package import TidingsModels

/// A shared access signature: the token that clients of a hub send.
///
/// `SharedAccessSignature sr=<encoded URI>&sig=<encoded HMAC>&se=<seconds>&skn=<key name>`, the fields in any order.
/// The signed text is `sr` exactly as it stands in the token, a line feed and `se`.
package struct SharedAccessSignature: Sendable, Equatable {
    /// As it stands in the token, still encoded.
    package let resource: String
    package let signature: [UInt8]
    /// As it stands in the token.
    package let expiryText: String
    package let expiry: Int64
    package let keyName: String

    private static let scheme = "SharedAccessSignature "

    /// A token over `resource`, encoded as .NET does (lower-case hex).
    package static func make(resource: String, keyName: String, key: String, expires: Timestamp) -> String {
        let encoded = PercentEncoding.encode(resource.lowercased(), lowerCaseHex: true)
        let digest = Digests.hmacSHA256(key: Array(key.utf8), Array("\(encoded)\n\(expires.seconds)".utf8))
        return scheme + "sr=\(encoded)&sig=\(PercentEncoding.encode(Base64.encode(digest)))"
            + "&se=\(expires.seconds)&skn=\(PercentEncoding.encode(keyName))"
    }

    /// Reads an `Authorization` value.
    /// - Throws: ``HubError`` `.unauthorized` that names the missing or malformed part.
    package init(parsing header: String) throws(HubError) {
        guard ASCII.equalIgnoringCase(header.utf8.prefix(Self.scheme.utf8.count), Self.scheme.utf8) else {
            throw Self.malformed("expected the scheme SharedAccessSignature")
        }
        var parts: [String: String] = [:]
        for part in header.dropFirst(Self.scheme.count).split(separator: "&") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else { throw Self.malformed("'\(pair[0].prefix(20))' has no value") }
            parts[ASCII.trimmed(pair[0]).lowercased()] = String(pair[1])
        }
        func part(_ name: String) throws(HubError) -> String {
            guard let value = parts[name], !value.isEmpty else {
                throw Self.malformed("the field '\(name)' is missing")
            }
            return value
        }
        resource = try part("sr")
        // A plus stays a plus here: some clients leave base64 unencoded.
        guard let base64 = PercentEncoding.decode(try part("sig")), let bytes = Base64.decode(base64) else {
            throw Self.malformed("the field 'sig' is not base64")
        }
        signature = bytes
        expiryText = try part("se")
        guard let seconds = Int64(expiryText.prefix { $0 != "." }),
            (0...Timestamp.never.seconds).contains(seconds)
        else {
            throw Self.malformed("the field 'se' is not a number of seconds")
        }
        expiry = seconds
        guard let name = PercentEncoding.decode(try part("skn")) else {
            throw Self.malformed("the field 'skn' is badly encoded")
        }
        keyName = name
    }

    /// True when `key`, the policy's text itself and not its base64 content, made the signature. Hand-written
    /// clients sign the decoded resource; both are taken.
    package func isSigned(with key: String) -> Bool {
        func matches(_ resource: String) -> Bool {
            Digests.equal(
                Digests.hmacSHA256(key: Array(key.utf8), Array("\(resource)\n\(expiryText)".utf8)),
                signature
            )
        }
        if matches(resource) { return true }
        return PercentEncoding.decode(resource).map(matches) ?? false
    }

    /// The host and path that the token covers, in lower case without scheme, user, port, query and trailing slashes.
    package var audience: (host: String, path: [String])? {
        guard let decoded = PercentEncoding.decode(resource)?.lowercased(), let parts = decoded.aroundScheme
        else { return nil }
        let rest = parts.rest.prefix { $0 != "?" && $0 != "#" }
        let authority = rest.prefix { $0 != "/" }
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        // A client that signs a whole URL has the path encoded once more inside.
        let path = rest.dropFirst(authority.count).split(separator: "/").map {
            PercentEncoding.decode($0) ?? String($0)
        }
        return (Self.withoutPort(host), path)
    }

    package static func withoutPort(_ host: some StringProtocol) -> String {
        if host.hasPrefix("["), let end = host.firstIndex(of: "]") { return String(host[...end]) }
        return String(host.prefix { $0 != ":" })
    }

    private static func malformed(_ reason: String) -> HubError {
        HubError(
            .unauthorized,
            "MalformedToken: The authorization header is not a shared access signature: \(reason)"
        )
    }
}

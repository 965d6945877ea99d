package import HTTPMessages
import PushCredentials
package import TidingsModels

/// Decides whether a request's shared access signature gives it a right at a hub (protocol reference, section 2).
package struct Authorizer: Sendable {
    /// The names under which clients reach this server, in lower case without ports. Empty takes the host that
    /// the request itself names.
    private let hosts: Set<String>

    package init(hosts: Set<String>) { self.hosts = hosts }

    /// - Parameters:
    ///   - policies: Those of the hub before those of the namespace.
    ///   - subject: Whose they are, for people.
    /// - Throws: ``HubError`` `.unauthorized` that says which part of the token fails. Always 401, also for a missing
    ///   right: SDKs take 403 for throttling and repeat it.
    package func check(
        _ head: HTTPRequestHead,
        _ right: AccessRights,
        policies: [AccessPolicy],
        of subject: String,
        now: Timestamp
    ) throws(HubError) -> AccessPolicy {
        guard let header = head.fields["Authorization"] else {
            throw HubError(
                .unauthorized,
                "MissingToken: The request has no Authorization header; a SharedAccessSignature is expected."
            )
        }
        if header.lowercased().hasPrefix("wrap ") {
            throw HubError(
                .unauthorized,
                "InvalidToken: Access Control Service tokens are no longer supported; use a SharedAccessSignature."
            )
        }
        let token = try SharedAccessSignature(parsing: header)
        // One text for an unknown name and a wrong key: which names exist is nobody's business.
        guard let policy = policies.first(where: { $0.name == token.keyName }),
            token.isSigned(with: policy.primaryKey) || token.isSigned(with: policy.secondaryKey)
        else {
            throw HubError(
                .unauthorized,
                "InvalidSignature: The token has an invalid signature: it was not made with a key of the policy '\(token.keyName)' "
                    + "of \(subject) over the encoded resource, a line feed and the expiry."
            )
        }
        guard token.expiry >= now.seconds else {
            throw HubError(
                .unauthorized,
                "ExpiredToken: The token expired \(now.seconds - token.expiry) seconds ago (se=\(token.expiry), now \(now.seconds))."
            )
        }
        try checkAudience(token, head)
        guard policy.rights.contains(right) else {
            throw HubError(
                .unauthorized,
                "MissingClaim: This operation needs the right \(right.text); the policy '\(policy.name)' has: \(policy.rights.text)."
            )
        }
        return policy
    }

    private func checkAudience(_ token: SharedAccessSignature, _ head: HTTPRequestHead) throws(HubError) {
        let requestHost = SharedAccessSignature.withoutPort(head.authority.lowercased())
        let path = head.target.segments.map { $0.lowercased() }
        let expected = "\(requestHost)/\(path.joined(separator: "/"))"
        guard let audience = token.audience else {
            throw HubError(
                .unauthorized,
                "InvalidAudience: The field 'sr' is not a URI; expected one that covers \(expected)."
            )
        }
        let isOurHost =
            hosts.isEmpty
            ? audience.host == requestHost : hosts.contains(audience.host) || audience.host == requestHost
        guard isOurHost, path.starts(with: audience.path) else {
            throw HubError(
                .unauthorized,
                "InvalidAudience: The token is for \(audience.host)/\(audience.path.joined(separator: "/")), which does not cover \(expected)."
            )
        }
    }
}

import HTTPMessages
import PushCredentials
import TidingsModels

/// Who may use the older Google services: an access token, or the project's server key.
struct FCMAccess: Sendable {
    let credentials: GatewayCredentials.FCM
    let tokens: AccessTokens
    let time: any TimeSource

    /// `Authorization: key=…` compares in constant time.
    func state(_ fields: HTTPFields) -> AccessTokens.State {
        tokenState(fields) ?? (hasServerKey(fields) ? .valid : .unknown)
    }

    /// Nil without an access token.
    func tokenState(_ fields: HTTPFields) -> AccessTokens.State? {
        AccessTokens.bearer(fields).map {
            tokens.state($0, for: "fcm:" + credentials.projectID, now: time.now)
        }
    }

    func hasServerKey(_ fields: HTTPFields) -> Bool {
        guard let value = fields["Authorization"], value.lowercased().hasPrefix("key=") else { return false }
        return Digests.equal(
            Digests.sha256(Array(value.utf8.dropFirst(4))),
            Digests.sha256(Array(credentials.serverKey.utf8))
        )
    }
}

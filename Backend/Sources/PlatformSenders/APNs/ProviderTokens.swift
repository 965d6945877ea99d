import JSONBytes
import PushCredentials
import Synchronization
import TidingsModels

/// The provider token of a team: one at a time, renewed ahead of its end.
final class ProviderTokens: Sendable {
    private let keyID: String
    private let teamID: String
    private let key: SigningKey
    private let time: any TimeSource
    /// The token and when it was made.
    private let made = Mutex<(token: String, at: Timestamp)?>(nil)
    /// Apple refuses tokens over an hour old, and new ones more often than every 20 minutes.
    private static let life = Duration.seconds(45 * 60)

    init(keyID: String, teamID: String, key: SigningKey, time: any TimeSource) {
        self.keyID = keyID
        self.teamID = teamID
        self.key = key
        self.time = time
    }

    func current() throws(CredentialError) -> String {
        let now = time.now
        // Signed under the lock: blocks that go out together must not bring Apple a token each.
        return try made.withLock { made throws(CredentialError) in
            if let made, now < made.at + Self.life { return made.token }
            let token = try WebToken.sign(
                header: JSONObject(["alg": "ES256", "kid": .string(keyID)]),
                claims: JSONObject(["iss": .string(teamID), "iat": .number(now.seconds)]),
                with: key
            )
            made = (token, now)
            return token
        }
    }

    /// Another token than the refused one.
    func replacement(for refused: String) throws(CredentialError) -> String {
        made.withLock { if $0?.token == refused { $0 = nil } }
        return try current()
    }
}

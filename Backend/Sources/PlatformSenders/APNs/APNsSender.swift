import HTTPMessages
package import HubCore
import JSONBytes
package import OutboundHTTP
package import PushCredentials
import Synchronization
package import TidingsModels

/// Sends to Apple over HTTP/2 with a provider token.
package final class APNsSender: PlatformSender {
    package let settings: APNsSettings
    private let pool: HTTP2Pool
    private let key: SigningKey
    private let time: any TimeSource
    /// The provider token and when it was made.
    private let current = Mutex<(token: String, made: Timestamp)?>(nil)
    /// Apple refuses tokens over an hour old, and new ones more often than every 20 minutes.
    private static let tokenLife = Duration.seconds(45 * 60)

    package init(_ settings: APNsSettings, pool: HTTP2Pool, time: any TimeSource) throws(CredentialError) {
        self.settings = settings
        self.pool = pool
        self.time = time
        key = try SigningKey.privateKey(settings.privateKey)
    }

    deinit { pool.close() }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        let token: String
        do throws(CredentialError) { token = try providerToken() } catch {
            return targets.map { _ in .refused(.invalidCredentials, reason: error.description) }
        }
        var results = await attempt(payload, targets, token)
        let stale = results.indices.filter {
            if case .success(let answer) = results[$0] {
                APNsResponse.asksForFreshToken(answer)
            } else {
                false
            }
        }
        if !stale.isEmpty, let fresh = freshToken(replacing: token) {
            for (index, result) in zip(stale, await attempt(payload, stale.map { targets[$0] }, fresh)) {
                results[index] = result
            }
        }
        return results.map { result in
            switch result {
            case .success(let answer): APNsResponse.answer(answer)
            case .failure(let error): error.targetAnswer
            }
        }
    }

    private func attempt(
        _ payload: PlatformPayload,
        _ targets: [PushTarget],
        _ token: String
    ) async -> [HTTP2Result] {
        await pool.send(
            targets.map { APNsPayload.request(payload, to: $0, token: token, settings: settings) }
        )
    }

    private func providerToken() throws(CredentialError) -> String {
        let now = time.now
        if let current = current.withLock({ $0 }), now < current.made + Self.tokenLife {
            return current.token
        }
        let token = try WebToken.sign(
            header: JSONObject(["alg": "ES256", "kid": .string(settings.keyID)]),
            claims: JSONObject(["iss": .string(settings.teamID), "iat": .number(now.seconds)]),
            with: key
        )
        current.withLock { $0 = (token, now) }
        return token
    }

    /// Another token than the refused one; nil when none can be made.
    private func freshToken(replacing refused: String) -> String? {
        current.withLock { if $0?.token == refused { $0 = nil } }
        return try? providerToken()
    }
}

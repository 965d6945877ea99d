import HTTPMessages
package import HubCore
import JSONBytes
package import OutboundHTTP
package import PushCredentials
package import TidingsModels

/// Sends to Apple over HTTP/2, with a provider token or with the certificate of its connections.
package final class APNsSender: PlatformSender {
    package let settings: APNsSettings
    private let pool: HTTP2Pool
    private let time: any TimeSource
    /// Nil with a certificate.
    private let tokens: ProviderTokens?

    /// - Parameter pool: Its connections show the settings' certificate, if there is one.
    package init(_ settings: APNsSettings, pool: HTTP2Pool, time: any TimeSource) throws(CredentialError) {
        self.settings = settings
        self.pool = pool
        self.time = time
        switch settings.credential {
        case .token(let keyID, let teamID, let privateKey):
            tokens = ProviderTokens(
                keyID: keyID,
                teamID: teamID,
                key: try SigningKey.privateKey(privateKey),
                time: time
            )
        case .certificate: tokens = nil
        }
    }

    deinit { pool.close() }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        // Apple ends the handshake of one that has ended, which would look like trouble of Apple's.
        if case .certificate(let identity) = settings.credential, identity.expires <= time.now {
            let reason = "the certificate ended at \(identity.expires)"
            return targets.map { _ in .refused(.invalidCredentials, reason: reason) }
        }
        do throws(CredentialError) {
            return try await attempts(payload, targets).map { result in
                switch result {
                case .success(let answer): APNsResponse.answer(answer)
                case .failure(let error): error.targetAnswer
                }
            }
        } catch { return targets.map { _ in .refused(.invalidCredentials, reason: error.description) } }
    }

    private func attempts(
        _ payload: PlatformPayload,
        _ targets: [PushTarget]
    ) async throws(CredentialError) -> [HTTP2Result] {
        guard let tokens else { return await attempt(payload, targets, nil) }
        let token = try tokens.current()
        var results = await attempt(payload, targets, token)
        let stale = results.indices.filter {
            if case .success(let answer) = results[$0] {
                APNsResponse.asksForFreshToken(answer)
            } else {
                false
            }
        }
        if !stale.isEmpty, let fresh = try? tokens.replacement(for: token) {
            for (index, result) in zip(stale, await attempt(payload, stale.map { targets[$0] }, fresh)) {
                results[index] = result
            }
        }
        return results
    }

    private func attempt(
        _ payload: PlatformPayload,
        _ targets: [PushTarget],
        _ token: String?
    ) async -> [HTTP2Result] {
        await pool.send(APNsPayload.requests(payload, to: targets, token: token, settings: settings))
    }
}

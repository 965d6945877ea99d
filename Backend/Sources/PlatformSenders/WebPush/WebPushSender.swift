import HTTPMessages
package import HubCore
package import OutboundHTTP
import PushCredentials
import Synchronization
package import TidingsModels

/// Sends to browsers: each message is encrypted for its subscription, whose endpoint names its push service.
package final class WebPushSender: PlatformSender {
    package let settings: WebPushSettings
    private let client: HTTPClient
    private let time: any TimeSource
    private let key: SigningKey
    /// The `Authorization` for each origin, and until when it is used.
    private let tokens = Mutex<[String: (text: String, until: Timestamp)]>([:])
    /// Requests under way at a time.
    private static let concurrencyMax = 64
    /// RFC 8292 section 2 allows 24 hours; half of it leaves room for clocks that are wrong.
    private static let tokenLife = Duration.seconds(12 * 3600)
    private static let tokenMargin = Duration.seconds(3600)
    /// Origins that are remembered; a client can name as many as it likes.
    private static let originCountMax = 1000

    package init(
        _ settings: WebPushSettings,
        client: HTTPClient,
        time: any TimeSource
    ) throws(WebPushSettings.Failure) {
        self.settings = settings
        self.client = client
        self.time = time
        guard let key = try? SigningKey.p256(point: settings.keyPair.point, scalar: settings.keyPair.scalar)
        else { throw WebPushSettings.Failure(description: "the VAPID key cannot be used") }
        self.key = key
    }

    package var gatewayOrigins: Set<String> { settings.gatewayOrigins }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        let shared = settings.usesOneKeyPerSend ? try? P256KeyPair.generate() : nil
        return await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target, shared)
        }
    }

    private func send(
        _ payload: PlatformPayload,
        to target: PushTarget,
        _ shared: P256KeyPair?
    ) async -> TargetAnswer {
        guard let endpoint = HTTPURL(target.handle.text), settings.mayReach(endpoint) else {
            return .refused(
                .badChannel,
                reason: "the subscription's endpoint is neither an https address nor at a configured gateway"
            )
        }
        guard let receiver = WebPushPayload.receiver(target.handle.keys) else {
            return .refused(
                .badChannel,
                reason: "p256dh is not 65 bytes, or auth not 16 bytes, in base64url"
            )
        }
        do {
            for attempt in 0..<2 {
                let authorization = try authorization(for: endpoint.origin)
                let request = try WebPushPayload.request(
                    payload,
                    to: target,
                    endpoint: endpoint,
                    receiver: receiver,
                    sender: shared ?? .generate(),
                    authorization: authorization,
                    settings: settings
                )
                let answer = try await client.send(request)
                if attempt == 0, WebPushResponse.asksForFreshToken(answer) {
                    invalidate(authorization, endpoint.origin)
                    continue
                }
                return WebPushResponse.answer(answer)
            }
            return .refused(.invalidCredentials, reason: "two tokens were refused")
        } catch let error as OutboundError {
            return error.targetAnswer
        } catch let error as CredentialError {
            return .refused(.badChannel, reason: error.description)
        } catch {
            return .retry(.pnsInterfaceError, reason: String(describing: error), after: nil)
        }
    }

    private func authorization(for origin: String) throws(CredentialError) -> String {
        let now = time.now
        if let known = tokens.withLock({ $0[origin] }), now < known.until { return known.text }
        let text = try VAPID.authorization(
            audience: origin,
            subject: settings.subject,
            expires: now + Self.tokenLife,
            key: key,
            point: settings.keyPair.point
        )
        tokens.withLock { tokens in
            if tokens.count >= Self.originCountMax { tokens.removeAll() }
            tokens[origin] = (text, now + (Self.tokenLife - Self.tokenMargin))
        }
        return text
    }

    private func invalidate(_ text: String, _ origin: String) {
        tokens.withLock { if $0[origin]?.text == text { $0[origin] = nil } }
    }
}

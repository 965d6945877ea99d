import HTTPMessages
package import HubCore
package import OutboundHTTP
package import TidingsModels

/// Sends to Amazon's devices, one request per registration id.
package final class ADMSender: PlatformSender {
    package let settings: ADMSettings
    private let client: HTTPClient
    private let tokens: OAuthTokenCache
    /// Requests under way at a time.
    private static let concurrencyMax = 64

    package init(_ settings: ADMSettings, client: HTTPClient, time: any TimeSource) {
        self.settings = settings
        self.client = client
        tokens = OAuthTokenCache(client: client, time: time) { _ in ADMPayload.tokenRequest(settings) }
    }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target)
        }
    }

    private func send(_ payload: PlatformPayload, to target: PushTarget) async -> TargetAnswer {
        guard let address = settings.address(target.handle.text) else {
            return .refused(.badChannel, reason: "the registration id makes no address")
        }
        for attempt in 0..<2 {
            let token: String
            switch await tokens.token() {
            case .success(let fetched): token = fetched
            case .failure(let failure): return failure.targetAnswer
            }
            do {
                let answer = try await client.send(
                    ADMPayload.request(
                        payload,
                        to: target,
                        address: address,
                        token: token,
                        settings: settings
                    )
                )
                if answer.status.code == 401, attempt == 0 {
                    await tokens.invalidate(token)
                    continue
                }
                return ADMResponse.answer(answer)
            } catch let error as OutboundError {
                return error.targetAnswer
            } catch {
                return .retry(.pnsInterfaceError, reason: String(describing: error), after: nil)
            }
        }
        return .refused(.invalidCredentials, reason: "the access token was refused twice")
    }
}

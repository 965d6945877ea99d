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
        return await tokens.answer(from: client) { token in
            ADMPayload.request(payload, to: target, address: address, token: token, settings: settings)
        } _: {
            ADMResponse.answer($0, for: target.handle)
        }
    }
}

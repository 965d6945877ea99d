import HTTPMessages
package import HubCore
package import OutboundHTTP
package import TidingsModels

/// Sends to Windows over HTTP/1.1, one request per channel.
package final class WNSSender: PlatformSender {
    package let settings: WNSSettings
    private let client: HTTPClient
    private let tokens: OAuthTokenCache
    /// Requests under way at a time.
    private static let concurrencyMax = 64

    package init(_ settings: WNSSettings, client: HTTPClient, time: any TimeSource) {
        self.settings = settings
        self.client = client
        tokens = OAuthTokenCache(client: client, time: time) { _ in WNSPayload.tokenRequest(settings) }
    }

    package var gatewayOrigins: Set<String> { settings.gatewayOrigins }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target)
        }
    }

    private func send(_ payload: PlatformPayload, to target: PushTarget) async -> TargetAnswer {
        guard let channel = HTTPURL(target.handle.text), settings.mayReceiveToken(channel) else {
            return .refused(
                .wrongToken,
                reason: "the channel is neither at notify.windows.com over https nor at a configured gateway"
            )
        }
        return await tokens.answer(from: client) { token in
            WNSPayload.request(payload, to: target, channel: channel, token: token, settings: settings)
        } _: {
            WNSResponse.answer($0)
        }
    }
}

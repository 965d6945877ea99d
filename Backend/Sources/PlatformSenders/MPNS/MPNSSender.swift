import HTTPMessages
package import HubCore
package import OutboundHTTP
import TidingsModels

/// Sends to Windows phones over HTTP/1.1, one request per channel.
package final class MPNSSender: PlatformSender {
    package let settings: MPNSSettings
    private let client: HTTPClient
    /// Requests under way at a time.
    private static let concurrencyMax = 64

    /// - Parameter client: Shows the settings' certificate, if there is one.
    package init(_ settings: MPNSSettings, client: HTTPClient) {
        self.settings = settings
        self.client = client
    }

    package var gatewayOrigins: Set<String> { settings.gatewayOrigins }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target)
        }
    }

    private func send(_ payload: PlatformPayload, to target: PushTarget) async -> TargetAnswer {
        guard let channel = HTTPURL(target.handle.text), settings.mayReach(channel) else {
            return .refused(
                .badChannel,
                reason: "the channel is neither below notify.live.net nor at a configured gateway"
            )
        }
        let request = MPNSPayload.request(payload, to: target, channel: channel, settings: settings)
        return await client.answer(request) { MPNSResponse.answer($0) }
    }
}

import HTTPMessages
package import HubCore
package import OutboundHTTP
package import TidingsModels

/// Sends to Baidu's channels, one request per channel: only so does the answer tell which of them is dead.
package final class BaiduSender: PlatformSender {
    package let settings: BaiduSettings
    private let client: HTTPClient
    private let time: any TimeSource
    /// Requests under way at a time.
    private static let concurrencyMax = 64

    package init(_ settings: BaiduSettings, client: HTTPClient, time: any TimeSource) {
        self.settings = settings
        self.client = client
        self.time = time
    }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target)
        }
    }

    private func send(_ payload: PlatformPayload, to target: PushTarget) async -> TargetAnswer {
        guard let ids = target.handle.baiduIDs, let address = settings.address else {
            return .refused(.badChannel, reason: "the handle is not <userId>-<channelId>")
        }
        let request = BaiduPayload.request(
            payload,
            channelID: ids.channel,
            address: address,
            now: time.now,
            settings: settings
        )
        return await client.answer(request) { BaiduResponse.answer($0) }
    }
}

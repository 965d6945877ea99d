import HTTPMessages
package import HubCore
package import OutboundHTTP
import TidingsModels

/// Sends to Xiaomi's devices, one request per registration id: only so does the answer tell which of them is dead.
package final class XiaomiSender: PlatformSender {
    package let settings: XiaomiSettings
    private let client: HTTPClient
    /// Requests under way at a time.
    private static let concurrencyMax = 64

    package init(_ settings: XiaomiSettings, client: HTTPClient) {
        self.settings = settings
        self.client = client
    }

    package func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await ConcurrentSends.answers(targets, limit: Self.concurrencyMax) { target in
            await self.send(payload, to: target)
        }
    }

    private func send(_ payload: PlatformPayload, to target: PushTarget) async -> TargetAnswer {
        guard let address = settings.address else {
            return .refused(.pnsInterfaceError, reason: "the endpoint makes no address")
        }
        do throws(XiaomiPayload.Refusal) {
            let request = try XiaomiPayload.request(
                payload,
                registrationID: target.handle.text,
                address: address,
                settings: settings
            )
            return await client.answer(request) { XiaomiResponse.answer($0) }
        } catch { return .refused(.invalidNotificationFormat, reason: error.reason) }
    }
}

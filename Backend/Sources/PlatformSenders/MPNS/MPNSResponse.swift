import HTTPMessages
import HubCore
import TidingsModels

/// What MPNS's answers mean (push services reference, sections 4.1 and 10).
enum MPNSResponse {
    /// A full queue is asked again in minutes.
    private static let queueDelay = Duration.seconds(120)
    /// A channel over its daily limit, and an inactive device, are asked at most once an hour.
    private static let hour = Duration.seconds(3600)

    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        let reason = reason(response)
        switch response.status.code {
        case 200:
            switch response.fields["X-NotificationStatus"]?.lowercased() {
            case "queuefull":
                return .retry(.channelThrottled, reason: reason, after: after ?? queueDelay)
            case "suppressed", "dropped": return .refused(.dropped, reason: reason)
            default: return .accepted
            }
        case 400: return .refused(.invalidNotificationFormat, reason: reason)
        case 401, 403: return .refused(.invalidCredentials, reason: reason)
        case 404:
            // Without the word it is any server's 404, which says nothing about the channel.
            guard response.fields["X-SubscriptionStatus"]?.lowercased() == "expired" else {
                return .refused(.badChannel, reason: reason)
            }
            return .dead(.expiredChannel, reason: reason, asOf: nil)
        case 406, 429: return .retry(.throttled, reason: reason, after: after ?? hour)
        case 412: return .retry(.channelDisconnected, reason: reason, after: after ?? hour)
        case 413: return .refused(.invalidNotificationSize, reason: reason)
        case 503: return .retry(.pnsUnavailable, reason: reason, after: after)
        case 500...: return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }

    private static func reason(_ response: HTTPAnswer) -> String {
        let words = [
            ("notification", "X-NotificationStatus"), ("device", "X-DeviceConnectionStatus"),
            ("subscription", "X-SubscriptionStatus"),
        ].compactMap { name, field in response.fields[field].map { "\(name) \($0)" } }
        return (["status \(response.status.code)"] + words).joined(separator: ", ")
    }
}

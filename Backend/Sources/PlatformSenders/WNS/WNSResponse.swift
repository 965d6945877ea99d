import HTTPMessages
import HubCore
import TidingsModels

/// What WNS's answers mean.
enum WNSResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let reason = response.fields["X-WNS-Error-Description"] ?? "status \(response.status.code)"
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch response.status.code {
        case 200:
            switch (response.fields["X-WNS-Status"] ?? response.fields["X-WNS-NotificationStatus"])?
                .lowercased()
            {
            case "dropped": return .refused(.dropped, reason: "WNS dropped the notification")
            case "channelthrottled":
                return .retry(
                    .channelThrottled,
                    reason: "the channel is throttled",
                    after: after ?? .seconds(60)
                )
            default: return .accepted
            }
        case 400: return .refused(.invalidNotificationFormat, reason: reason)
        case 401, 403: return .refused(.invalidCredentials, reason: reason)
        case 404: return .dead(.badChannel, reason: reason, asOf: nil)
        case 410: return .dead(.expiredChannel, reason: reason, asOf: nil)
        case 406, 429: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        case 413: return .refused(.invalidNotificationSize, reason: reason)
        case 503: return .retry(.pnsUnavailable, reason: reason, after: after)
        case 500...: return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }
}

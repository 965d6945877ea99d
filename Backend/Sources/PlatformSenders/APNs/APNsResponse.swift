import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What Apple's answers mean (Apple: "Handling notification responses from APNs").
enum APNsResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        if response.status.code == 200 { return .accepted }
        let json = try? JSONValue(parsing: response.body)
        let reason = json?["reason"]?.stringValue ?? "status \(response.status.code)"
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch (response.status.code, reason) {
        case (410, _):
            let asOf = json?["timestamp"]?.integerValue.map { Timestamp(milliseconds: Int64($0)) }
            return .dead(.expiredChannel, reason: reason, asOf: asOf)
        case (400, "BadDeviceToken"): return .dead(.badChannel, reason: reason, asOf: nil)
        case (400, "DeviceTokenNotForTopic"): return .dead(.wrongToken, reason: reason, asOf: nil)
        case (400, "TopicDisallowed"): return .refused(.invalidCredentials, reason: reason)
        case (400, "IdleTimeout"): return .retry(.pnsInterfaceError, reason: reason, after: nil)
        case (400, _): return .refused(.invalidNotificationFormat, reason: reason)
        case (403, _): return .refused(.invalidCredentials, reason: reason)
        case (413, _): return .refused(.invalidNotificationSize, reason: reason)
        case (429, "TooManyProviderTokenUpdates"):
            return .retry(.throttled, reason: reason, after: after ?? .seconds(20 * 60))
        case (429, _): return .retry(.channelThrottled, reason: reason, after: after ?? .seconds(60))
        case (503, _): return .retry(.pnsUnavailable, reason: reason, after: after)
        case (500..., _): return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }

    /// True for the one refusal that a fresh token cures.
    static func asksForFreshToken(_ response: HTTPAnswer) -> Bool {
        response.status.code == 403
            && (try? JSONValue(parsing: response.body))?["reason"]?.stringValue == "ExpiredProviderToken"
    }
}

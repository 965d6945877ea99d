import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What a push service's answer means (RFC 8030 sections 5 and 7.3, RFC 8292 section 4; push services reference, section 10).
enum WebPushResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let reason = reason(response)
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch response.status.code {
        case 200, 201, 202: return .accepted
        case 401, 403: return .refused(.invalidCredentials, reason: reason)
        case 404: return .dead(.badChannel, reason: reason, asOf: nil)
        case 410: return .dead(.expiredChannel, reason: reason, asOf: nil)
        case 413: return .refused(.invalidNotificationSize, reason: reason)
        case 408: return .retry(.pnsInterfaceError, reason: reason, after: after)
        case 429: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        case 503: return .retry(.pnsUnavailable, reason: reason, after: after)
        case 500...: return .retry(.pnsServerError, reason: reason, after: after)
        case 400: return .refused(.invalidNotificationFormat, reason: reason)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }

    /// True for the refusals that a fresh token may cure: an expired one, at a service that gives no clearer sign.
    static func asksForFreshToken(_ response: HTTPAnswer) -> Bool {
        response.status.code == 401 || response.status.code == 403
    }

    /// `message` of Mozilla's answers, `reason` of Apple's, else the status.
    private static func reason(_ response: HTTPAnswer) -> String {
        let json = try? JSONValue(parsing: response.body)
        let text = json?["message"]?.stringValue ?? json?["reason"]?.stringValue
        return text ?? "status \(response.status.code)"
    }
}

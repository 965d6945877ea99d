import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What ADM's answers mean (push services reference, sections 4.2 and 10).
///
/// A 200 may name another registration id, which replaces the one that was used. ``TargetAnswer`` has no word for that: the
/// registration keeps the old one until the app, which Amazon tells of the new one too, registers again.
enum ADMResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let word = (try? JSONValue(parsing: response.body))?["reason"]?.stringValue
        let reason = word ?? "status \(response.status.code)"
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch response.status.code {
        case 200: return .accepted
        case 400:
            return switch word {
            case "InvalidRegistrationId": .dead(.badChannel, reason: reason, asOf: nil)
            case "Unregistered": .dead(.expiredChannel, reason: reason, asOf: nil)
            default: .refused(.invalidNotificationFormat, reason: reason)
            }
        case 401, 403: return .refused(.invalidCredentials, reason: reason)
        case 413: return .refused(.invalidNotificationSize, reason: reason)
        case 429: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        case 503: return .retry(.pnsUnavailable, reason: reason, after: after)
        case 500...: return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }
}

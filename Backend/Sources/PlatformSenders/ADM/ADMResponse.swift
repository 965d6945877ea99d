import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What ADM's answers mean (push services reference, sections 4.2 and 10).
enum ADMResponse {
    /// A 200 may name another registration id, which replaces the one that was used.
    static func answer(_ response: HTTPAnswer, for handle: PlatformHandle) -> TargetAnswer {
        let json = try? JSONValue(parsing: response.body)
        let word = json?["reason"]?.stringValue
        let reason = word ?? "status \(response.status.code)"
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch response.status.code {
        case 200:
            guard let text = json?["registrationID"]?.stringValue, text != handle.text,
                let current = try? PlatformHandle(text, platform: .adm)
            else { return .accepted }
            return .replaced(by: current)
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

import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What Mi Push's answers mean (push services reference, sections 4.4 and 10). The status is 200 also for refusals, whose code stands in the
/// body; codes that the reference does not know cost no registration.
enum XiaomiResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let json = try? JSONValue(parsing: response.body)
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        guard response.status.code == 200 else { return answer(response.status.code, after) }
        guard let code = json?["code"]?.integerValue else {
            return .retry(.pnsInterfaceError, reason: "the answer has no code", after: after)
        }
        let words = json?["description"]?.stringValue ?? json?["reason"]?.stringValue ?? ""
        let reason = "\(code) \(words)"
        switch code {
        case 0: return .accepted
        case 20301: return .dead(.badChannel, reason: reason, asOf: nil)
        case 21301: return .refused(.invalidCredentials, reason: reason)
        case 10022: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        default: return .refused(.invalidNotificationFormat, reason: reason)
        }
    }

    private static func answer(_ status: Int, _ after: Duration?) -> TargetAnswer {
        let reason = "status \(status)"
        switch status {
        case 400: return .refused(.invalidNotificationFormat, reason: reason)
        case 401, 403: return .refused(.invalidCredentials, reason: reason)
        case 413: return .refused(.invalidNotificationSize, reason: reason)
        case 429: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        case 503: return .retry(.pnsUnavailable, reason: reason, after: after)
        case 500...: return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }
}

import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What Baidu's answers mean (push services reference, sections 4.3 and 10). The error code stands in the body, whatever the status.
enum BaiduResponse {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        let json = try? JSONValue(parsing: response.body)
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        guard let code = json?["error_code"]?.integerValue, code != 0 else {
            return answer(response.status.code, isRead: json != nil, after)
        }
        let reason = "\(code) \(json?["error_msg"]?.stringValue ?? "")"
        switch code {
        case 30600: return .retry(.pnsServerError, reason: reason, after: after)
        case 30602: return .refused(.invalidNotificationFormat, reason: reason)
        case 30603: return .refused(.invalidCredentials, reason: reason)
        case 30604: return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        // The request was too old when it was read; another try is signed anew.
        case 30606: return .retry(.pnsInterfaceError, reason: reason, after: after)
        case 30607: return .dead(.expiredChannel, reason: reason, asOf: nil)
        case 30608: return .dead(.badChannel, reason: reason, asOf: nil)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }

    private static func answer(_ status: Int, isRead: Bool, _ after: Duration?) -> TargetAnswer {
        let reason = "status \(status)"
        switch status {
        case 200 where isRead: return .accepted
        case 200: return .retry(.pnsInterfaceError, reason: "the answer is not JSON", after: after)
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

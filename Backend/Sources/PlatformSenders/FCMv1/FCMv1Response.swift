import HTTPMessages
import HubCore
import JSONBytes
import TidingsModels

/// What Google's answers mean (Firebase: "ErrorCode" of the FCM REST reference).
enum FCMv1Response {
    static func answer(_ response: HTTPAnswer) -> TargetAnswer {
        if response.status.isSuccess { return .accepted }
        let error = (try? JSONValue(parsing: response.body))?["error"]
        let code = errorCode(error)
        let reason =
            "\(code.isEmpty ? "status \(response.status.code)" : code): \(error?["message"]?.stringValue ?? "")"
        let after = response.retryAfterSeconds.map { Duration.seconds($0) }
        switch (response.status.code, code) {
        case (404, "UNREGISTERED"): return .dead(.expiredChannel, reason: reason, asOf: nil)
        case (403, "SENDER_ID_MISMATCH"): return .dead(.wrongToken, reason: reason, asOf: nil)
        case (400, _):
            return namesToken(error)
                ? .dead(.badChannel, reason: reason, asOf: nil)
                : .refused(.invalidNotificationFormat, reason: reason)
        case (401, _), (403, _), (404, _): return .refused(.invalidCredentials, reason: reason)
        case (413, _): return .refused(.invalidNotificationSize, reason: reason)
        case (429, _): return .retry(.throttled, reason: reason, after: after ?? .seconds(60))
        case (503, _): return .retry(.pnsUnavailable, reason: reason, after: after)
        case (500..., _): return .retry(.pnsServerError, reason: reason, after: after)
        default: return .refused(.pnsInterfaceError, reason: reason)
        }
    }

    private static func errorCode(_ error: JSONValue?) -> String {
        for detail in error?["details"]?.arrayValue ?? [] {
            if let code = detail["errorCode"]?.stringValue { return code }
        }
        return error?["status"]?.stringValue ?? ""
    }

    /// True when a field violation is about the token: the payload is known to be good by then.
    private static func namesToken(_ error: JSONValue?) -> Bool {
        (error?["details"]?.arrayValue ?? []).contains { detail in
            (detail["fieldViolations"]?.arrayValue ?? []).contains {
                $0["field"]?.stringValue == "message.token"
            }
        }
    }
}

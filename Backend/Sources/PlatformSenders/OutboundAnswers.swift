import HubCore
import OutboundHTTP
import TidingsModels

extension OutboundError {
    /// What a request without an answer means for its target: it is tried again under the same delivery id.
    var targetAnswer: TargetAnswer {
        switch kind {
        case .unreachable: .retry(.pnsUnreachable, reason: description, after: nil)
        case .interrupted, .badAnswer: .retry(.pnsInterfaceError, reason: description, after: nil)
        case .timeout: .retry(.pnsUnavailable, reason: description, after: nil)
        }
    }
}

extension OAuthTokenCache.Failure {
    var targetAnswer: TargetAnswer {
        switch self {
        case .refused(let reason): .refused(.invalidCredentials, reason: reason)
        case .unavailable(let reason, let after): .retry(.pnsUnavailable, reason: reason, after: after)
        }
    }
}

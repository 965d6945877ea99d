package import TidingsModels

/// A target that its platform did not accept, as feedback and the error details of a send tell it (protocol reference, section 5.10).
package struct TargetFailure: Sendable, Equatable {
    package var notification: NotificationID
    package var time: Timestamp
    package var handle: PlatformHandle
    /// Empty for a direct send.
    package var registration: String
    package var installation: String?
    package var outcome: Outcome
    package var reason: String

    package init(
        notification: NotificationID,
        time: Timestamp,
        handle: PlatformHandle,
        registration: String,
        installation: String?,
        outcome: Outcome,
        reason: String
    ) {
        self.notification = notification
        self.time = time
        self.handle = handle
        self.registration = registration
        self.installation = installation
        self.outcome = outcome
        self.reason = reason
    }

    /// Records kept of one send; the outcomes count all.
    package static let countMax = 10_000
}

extension Outcome {
    /// `NotificationSystemError` of the original's feedback.
    package var feedbackText: String {
        switch self {
        case .invalidCredentials: "Invalid PNS Credentials"
        case .pnsUnreachable, .pnsUnavailable, .pnsInterfaceError, .pnsServerError: "PNS Unreachable"
        case .throttled, .channelThrottled: "PnsThrottled"
        case .badChannel, .expiredChannel, .wrongToken, .dropped: rawValue
        default: rawValue
        }
    }
}

/// How one target of a send ended; the names are those of the hub protocol's telemetry.
public enum Outcome: String, CaseIterable, Sendable, Hashable {
    /// The platform accepted it.
    case success = "Success"
    /// Not sent: a repeat of a handle in this send, or the registration is gone or no longer matches.
    case skipped = "Skipped"
    /// The handle is invalid, expired or belongs to another app.
    case badChannel = "BadChannel", expiredChannel = "ExpiredChannel", wrongToken = "WrongToken"
    /// The platform limits the device or the sender.
    case channelThrottled = "ChannelThrottled", throttled = "Throttled"
    /// Windows: the device is off line, or the platform dropped it.
    case channelDisconnected = "ChannelDisconnected", dropped = "Dropped"
    /// The hub's credentials for the platform are absent or refused.
    case invalidCredentials = "InvalidCredentials"
    /// The payload is refused.
    case invalidNotificationFormat = "InvalidNotificationFormat", invalidNotificationSize =
        "InvalidNotificationSize"
    /// The time budget ran out.
    case abandoned = "AbandonedNotificationMessages"
    /// The platform is in trouble.
    case pnsInterfaceError = "PnsInterfaceError", pnsServerError = "PnsServerError"
    /// The platform cannot be reached.
    case pnsUnavailable = "PnsUnavailable", pnsUnreachable = "PnsUnreachable"
    /// Anything else.
    case unknownError = "UnknownError"
}

/// Where a send stands.
public enum NotificationState: String, Sendable, Hashable {
    /// Accepted and on disk.
    case enqueued = "Enqueued"
    /// Being handed to the platforms.
    case processing = "Processing"
    /// Every target has an outcome.
    case completed = "Completed"
    /// The tags matched no registration.
    case noTargetFound = "NoTargetFound"
    /// Given up after its time budget.
    case abandoned = "Abandoned"
    /// Accepted, and waiting for its time.
    case scheduled = "Scheduled"
    /// Taken back before its time.
    case canceled = "Canceled"
    /// A state that this version does not know.
    case unknown = "Unknown"

    /// True when nothing more happens.
    public var isFinal: Bool { self != .enqueued && self != .processing && self != .scheduled }
}

/// What became of a send.
public struct NotificationDetails: Equatable, Sendable {
    /// Its id.
    public var id: NotificationID
    /// Where it stands.
    public var state: NotificationState
    /// When the hub took it.
    public var enqueued: Timestamp
    /// When the first target was looked up.
    public var started: Timestamp?
    /// When the last outcome came in.
    public var ended: Timestamp?
    /// The notification.
    public var notification: HubNotification
    /// The tag expression as it was sent; empty for a broadcast.
    public var tags: String
    /// The registrations that matched.
    public var targetCount: Int
    /// How many targets ended how, for each platform.
    public var outcomes: [Platform: [Outcome: Int]]
    /// Where the push services' errors are told, a record on each line; nil when there was none.
    public var errorDetails: String?
    /// Which trace it belongs to; nil from a hub that tells none.
    package var trace: TraceID?

    /// The details of a send.
    public init(
        id: NotificationID,
        state: NotificationState,
        enqueued: Timestamp,
        started: Timestamp? = nil,
        ended: Timestamp? = nil,
        notification: HubNotification,
        tags: String,
        targetCount: Int = 0,
        outcomes: [Platform: [Outcome: Int]] = [:],
        errorDetails: String? = nil
    ) {
        self.errorDetails = errorDetails
        self.id = id
        self.state = state
        self.enqueued = enqueued
        self.started = started
        self.ended = ended
        self.notification = notification
        self.tags = tags
        self.targetCount = targetCount
        self.outcomes = outcomes
    }

    /// How many targets ended so, over all platforms.
    public func count(_ outcome: Outcome) -> Int { outcomes.values.reduce(0) { $0 + ($1[outcome] ?? 0) } }
}

/// How a test send ended for one registration.
public struct RegistrationResult: Equatable, Sendable {
    /// The push service.
    public var applicationPlatform: Platform
    /// The whole handle.
    public var pnsHandle: String
    /// The registration.
    public var registrationID: RegistrationID
    /// A sentence of the hub; ours ends with the push service's own reason.
    public var outcome: String

    /// The result of one registration.
    public init(
        applicationPlatform: Platform,
        pnsHandle: String,
        registrationID: RegistrationID,
        outcome: String
    ) {
        self.applicationPlatform = applicationPlatform
        self.pnsHandle = pnsHandle
        self.registrationID = registrationID
        self.outcome = outcome
    }
}

/// The answer to a test send, which reaches at most 10 registrations.
public struct NotificationOutcome: Equatable, Sendable {
    /// How many the push services accepted.
    public var success: Int
    /// How many they did not.
    public var failure: Int
    /// One for each registration.
    public var results: [RegistrationResult]

    /// An answer; without arguments that of a send without targets.
    public init(success: Int = 0, failure: Int = 0, results: [RegistrationResult] = []) {
        self.success = success
        self.failure = failure
        self.results = results
    }
}

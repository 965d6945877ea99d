package import HTTPMessages

/// Every address of a hub. The server matches it, the client prints it.
package enum HubRoute: Equatable, Sendable {
    /// The hubs of the namespace: in full below `$Resources`, else as titles alone.
    case hubs(isFull: Bool)
    case hub(String)
    case registrationIDs(hub: String)
    case registrations(hub: String)
    /// The id as text: one that is malformed is answered with 410, not 404.
    case registration(hub: String, id: String)
    case taggedRegistrations(hub: String, tag: String)
    case messages(hub: String)
    case batch(hub: String)
    case message(hub: String, id: String)
    case scheduledMessages(hub: String)
    case scheduledMessage(hub: String, id: String)
    case installation(hub: String, id: String)
    case jobs(hub: String)
    case job(hub: String, id: String)
    case feedback(hub: String)

    /// Empty for the namespace.
    package var hub: String {
        switch self {
        case .hubs: ""
        case .hub(let hub): hub
        case .registrationIDs(let hub), .registrations(let hub), .registration(let hub, _),
            .taggedRegistrations(let hub, _), .messages(let hub), .batch(let hub), .message(let hub, _),
            .scheduledMessages(let hub), .scheduledMessage(let hub, _), .installation(let hub, _),
            .jobs(let hub), .job(let hub, _),
            .feedback(let hub):
            hub
        }
    }

    /// True for the addresses that notifications are posted to.
    package var isSend: Bool {
        switch self {
        case .messages, .batch, .scheduledMessages: true
        default: false
        }
    }

    /// The path in the spelling that every SDK understands.
    package var path: String {
        let root = "/" + PercentEncoding.encode(hub)
        return switch self {
        case .hubs(let isFull): isFull ? "/$Resources/NotificationHubs" : "/"
        case .hub: root
        case .registrationIDs: root + "/registrationids"
        case .registrations: root + "/registrations"
        case .registration(_, let id): root + "/registrations/" + PercentEncoding.encode(id)
        case .taggedRegistrations(_, let tag):
            root + "/tags/" + PercentEncoding.encode(tag) + "/registrations"
        case .messages: root + "/messages"
        case .batch: root + "/messages/$batch"
        case .message(_, let id): root + "/messages/" + PercentEncoding.encode(id)
        case .scheduledMessages: root + "/schedulednotifications"
        case .jobs: root + "/jobs"
        case .job(_, let id): root + "/jobs/" + PercentEncoding.encode(id)
        case .feedback: root + "/feedbackcontainer"
        case .installation(_, let id): root + "/installations/" + PercentEncoding.encode(id)
        case .scheduledMessage(_, let id): root + "/schedulednotifications/" + PercentEncoding.encode(id)
        }
    }

    /// Fixed words match without case, and a trailing slash is optional. Nil for an unknown path.
    package init?(_ target: RequestTarget) {
        let segments = target.segments
        let words = segments.map { $0.lowercased() }
        guard let hub = segments.first else {
            self = .hubs(isFull: false)
            return
        }
        if words[0] == "$resources" {
            guard words.count == 2, words[1] == "notificationhubs" else { return nil }
            self = .hubs(isFull: true)
            return
        }
        guard segments.count >= 2 else {
            self = .hub(hub)
            return
        }
        switch (segments.count, words[1]) {
        case (2, "registrationids"): self = .registrationIDs(hub: hub)
        case (2, "registrations"): self = .registrations(hub: hub)
        case (3, "registrations"): self = .registration(hub: hub, id: segments[2])
        case (4, "tags") where words[3] == "registrations":
            self = .taggedRegistrations(hub: hub, tag: segments[2])
        case (2, "messages"): self = .messages(hub: hub)
        case (3, "messages") where words[2] == "$batch": self = .batch(hub: hub)
        // The original tells such an address for some batches.
        case (4, "messages") where words[2] == "$batch": self = .message(hub: hub, id: segments[3])
        case (3, "messages"): self = .message(hub: hub, id: segments[2])
        case (2, "schedulednotifications"): self = .scheduledMessages(hub: hub)
        case (2, "jobs"): self = .jobs(hub: hub)
        case (3, "jobs"): self = .job(hub: hub, id: segments[2])
        case (2, "feedbackcontainer"): self = .feedback(hub: hub)
        case (3, "installations"): self = .installation(hub: hub, id: segments[2])
        case (3, "schedulednotifications"): self = .scheduledMessage(hub: hub, id: segments[2])
        default: return nil
        }
    }
}

/// The `api-version` that our client sends.
package let hubAPIVersion = "2020-06"

/// Header names of the hub protocol.
package enum HubHeader {
    package static let format = "ServiceBusNotification-Format"
    package static let deviceHandle = "ServiceBusNotification-DeviceHandle"
    package static let tags = "ServiceBusNotification-Tags"
    package static let apnsExpiry = "ServiceBusNotification-Apns-Expiry"
    package static let continuation = "x-ms-continuationtoken"
    package static let trackingID = "TrackingId"
    package static let correlationID = "x-ms-correlation-request-id"
    /// Ours: the delivery id towards our own gateway (`docs/compatibility.md`).
    /// W3C Trace Context.
    package static let traceParent = "traceparent"
    /// Ours: the trace-id of the answer.
    package static let traceID = "Tidings-Trace-Id"
    package static let scheduleTime = "ServiceBusNotification-ScheduleTime"
    package static let deliveryID = "Tidings-Delivery-Id"
}

package import TidingsModels

extension Hub {
    /// The most handles of one direct send, as at the original.
    package static let directHandleCountMax = 1000

    // MARK: Sends

    /// Accepts a notification; it is on disk when this returns, and dispatched soon after.
    ///
    /// - Parameter scheduled: When to begin: a past moment means now, and one more than ``scheduleMax`` ahead is refused.
    package func send(
        _ notification: HubNotification,
        tags: String,
        at scheduled: Timestamp? = nil
    ) async throws -> NotificationID {
        var send = try checked(notification, tags)
        if let scheduled {
            guard scheduled <= time.now + Self.scheduleMax else {
                throw HubError(
                    .badRequest,
                    "The schedule time \(scheduled) is more than seven days ahead; now is \(time.now)."
                )
            }
            send.scheduled = max(scheduled, send.enqueued)
        }
        try await enqueue(send)
        return send.id
    }

    /// Accepts a native notification for handles that need no registration; a handle that comes twice gets it once.
    package func send(
        _ notification: HubNotification,
        to handles: [PlatformHandle]
    ) async throws -> NotificationID {
        let send = try checked(notification, handles)
        try await enqueue(send)
        return send.id
    }

    private func enqueue(_ send: PendingSend) async throws {
        try await queue.enqueue(send)
        await dispatcher.submit(send.id, due: send.begins)
    }

    /// Takes a scheduled send back.
    /// - Throws: ``HubError`` `.notFound` when there is none, or its time has come.
    package func cancel(_ id: String) async throws {
        guard let id = NotificationID(id), try await queue.cancel(id, now: time.now) else {
            throw HubError(.notFound, "There is no scheduled notification '\(id)', or its time has come.")
        }
    }

    /// Sends to a few of the matching registrations at once and tells how each ended.
    package func testSend(
        _ notification: HubNotification,
        tags: String
    ) async throws -> (id: NotificationID, NotificationOutcome) {
        let send = try checked(notification, tags)
        return (send.id, try await dispatcher.test(send))
    }

    /// The same for handles.
    package func testSend(
        _ notification: HubNotification,
        to handles: [PlatformHandle]
    ) async throws -> (id: NotificationID, NotificationOutcome) {
        let send = try checked(notification, handles)
        return (send.id, try await dispatcher.test(send))
    }

    /// Tells what the send would do.
    package func explain(_ notification: HubNotification, tags: String) async throws -> SendExplanation {
        try await dispatcher.explain(try checked(notification, tags))
    }

    package func explain(
        _ notification: HubNotification,
        to handles: [PlatformHandle]
    ) async throws -> SendExplanation {
        try await dispatcher.explain(try checked(notification, handles))
    }

    private func checked(
        _ notification: HubNotification,
        _ handles: [PlatformHandle]
    ) throws(HubError) -> PendingSend {
        guard (1...Self.directHandleCountMax).contains(handles.count) else {
            throw HubError(
                .badRequest,
                "The send names \(handles.count) devices; allowed are 1 to \(Self.directHandleCountMax)."
            )
        }
        guard let long = handles.first(where: { $0.text.utf8.count > PlatformHandle.byteCountMax }) else {
            var send = try checked(notification, "")
            send.handles = handles
            return send
        }
        throw HubError(
            .badRequest,
            "A device handle has \(long.text.utf8.count) bytes, at most \(PlatformHandle.byteCountMax) are allowed."
        )
    }

    private func checked(_ notification: HubNotification, _ tags: String) throws(HubError) -> PendingSend {
        let isBroadcast = tags.allSatisfy { $0 == " " }
        if !isBroadcast { _ = try TagExpression(parsing: tags, limits: expressionLimits) }
        switch notification.format {
        case .native(let platform): try PayloadRules.checkNative(notification, platform)
        case .template: _ = try TemplateValues.read(notification.body)
        }
        var random = random
        let now = time.now
        return PendingSend(
            id: NotificationID.random(at: now, using: &random),
            notification: notification,
            tags: isBroadcast ? "" : tags,
            enqueued: now,
            trace: TraceID.current
        )
    }

    package func details(_ id: String) async throws -> NotificationDetails {
        guard let id = NotificationID(id), let details = try await queue.details(id) else {
            throw HubError(.notFound, "The notification is not known.")
        }
        return details
    }
}

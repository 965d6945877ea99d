package import TidingsModels

/// Draws randomness from whoever assembles the hub, so that the rules hold none of their own.
package struct InjectedRandom: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    /// - Parameter draw: Must be unforeseeable: registration ids are capabilities.
    package init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }

    package func next() -> UInt64 { draw() }
}

/// One hub: its keys, its registrations and its sends.
package final class Hub: Sendable {
    package let name: String
    package let policies: [AccessPolicy]
    package let listenMode: ListenMode
    let store: any RegistrationStore
    private let queue: any SendQueue
    package let dispatcher: Dispatcher
    private let time: any TimeSource
    private let random: InjectedRandom
    private let expressionLimits: TagExpressionLimits
    /// How long a registration lives after its last write; nil for ever.
    package let registrationTTL: Duration?

    /// The largest request body, as of the original.
    package static let notificationByteCountMax = 64 << 10
    /// How far ahead a send may be scheduled, as at the original.
    package static let scheduleMax = Duration.seconds(7 * 86400)
    /// The most entries of a page.
    package static let pageCountMax = 100

    package init(
        name: String,
        policies: [AccessPolicy],
        listenMode: ListenMode,
        store: any RegistrationStore,
        queue: any SendQueue,
        dispatcher: Dispatcher,
        time: any TimeSource,
        random: InjectedRandom,
        expressionLimits: TagExpressionLimits = TagExpressionLimits(),
        registrationTTL: Duration? = nil
    ) {
        self.registrationTTL = registrationTTL
        self.name = name
        self.policies = policies
        self.listenMode = listenMode
        self.store = store
        self.queue = queue
        self.dispatcher = dispatcher
        self.time = time
        self.random = random
        self.expressionLimits = expressionLimits
    }

    package var now: Timestamp { time.now }
    var registrationExpiry: Timestamp { registrationTTL.map { time.now + $0 } ?? .never }

    // MARK: Registrations

    package func newRegistrationID() -> RegistrationID {
        var random = random
        return RegistrationID.random(using: &random)
    }

    /// Each call makes a registration of its own, also for a handle that has one.
    package func create(
        _ content: RegistrationContent,
        by writer: RegistrationWriter
    ) async throws -> Registration {
        try RegistrationRules.check(content)
        return try await store.put(
            newRegistrationID(),
            content,
            .none,
            by: writer,
            expires: registrationExpiry,
            now: time.now
        )
    }

    /// - Throws: ``HubError`` `.gone` for an id that no hub issues, `.notFound` and `.preconditionFailed` by `condition`,
    ///   `.unauthorized` by `writer`.
    package func put(
        _ id: String,
        bodyID: String?,
        _ content: RegistrationContent,
        _ condition: EntityCondition,
        by writer: RegistrationWriter
    ) async throws -> Registration {
        let id = try Self.usable(id)
        if let bodyID, bodyID != id.text {
            throw HubError(
                .badRequest,
                "RegistrationId '\(bodyID)' in the body differs from '\(id)' in the address."
            )
        }
        if content.tags.contains(where: \.isSystem),
            let known = try await store.registration(id, now: time.now),
            known.content == content
        {
            // The hub's own tags may be written back as they were read.
            try condition.check(existing: known.etag)
            return known
        }
        try RegistrationRules.check(content)
        return try await store.put(
            id,
            content,
            condition,
            by: writer,
            expires: registrationExpiry,
            now: time.now
        )
    }

    package func delete(
        _ id: String,
        _ condition: EntityCondition,
        by writer: RegistrationWriter
    ) async throws {
        guard let id = RegistrationID(id) else {
            throw HubError(.notFound, "The registration does not exist.")
        }
        try await store.delete(id, condition == .none ? .exists : condition, by: writer)
    }

    package func registration(_ id: String) async throws -> Registration {
        guard let id = RegistrationID(id), let found = try await store.registration(id, now: time.now) else {
            throw HubError(.notFound, "The registration does not exist.")
        }
        return found
    }

    package func registrations(
        _ filter: RegistrationFilter,
        after: UInt32?,
        countMax: Int
    ) async throws -> RegistrationPage {
        try await store.registrations(
            filter,
            after: after,
            countMax: min(max(1, countMax), Self.pageCountMax),
            now: time.now
        )
    }

    private static func usable(_ text: String) throws(HubError) -> RegistrationID {
        guard let id = RegistrationID(text) else {
            throw HubError(
                .gone,
                "The registration id '\(text)' is not one that a hub issues (<digits>-<digits>-<digits>). Request a new one."
            )
        }
        return id
    }

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
        try await queue.enqueue(send)
        await dispatcher.submit(send.id, due: send.begins)
        return send.id
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

import Synchronization
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
    private let current: Mutex<HubSettings>
    private let settingsChanged: @Sendable (HubSettings) -> Void
    package let listenMode: ListenMode
    package let channels: ChannelRules
    let store: any RegistrationStore
    package let queue: any SendQueue
    package let dispatcher: Dispatcher
    let time: any TimeSource
    let random: InjectedRandom
    /// Nil where there are none.
    package let jobs: HubJobs?
    let expressionLimits: TagExpressionLimits

    /// The largest request body, as of the original.
    package static let notificationByteCountMax = 64 << 10
    /// How far ahead a send may be scheduled, as at the original.
    package static let scheduleMax = Duration.seconds(7 * 86400)
    /// The most entries of a page.
    package static let pageCountMax = 100

    package init(
        name: String,
        settings: HubSettings,
        listenMode: ListenMode,
        channelMode: ChannelMode,
        store: any RegistrationStore,
        queue: any SendQueue,
        dispatcher: Dispatcher,
        time: any TimeSource,
        random: InjectedRandom,
        jobs: HubJobs? = nil,
        settingsChanged: @escaping @Sendable (HubSettings) -> Void = { _ in },
        expressionLimits: TagExpressionLimits = TagExpressionLimits()
    ) {
        self.name = name
        current = Mutex(settings)
        self.listenMode = listenMode
        channels = ChannelRules(channelMode, dispatcher.senders)
        self.store = store
        self.queue = queue
        self.dispatcher = dispatcher
        self.time = time
        self.random = random
        self.jobs = jobs
        self.settingsChanged = settingsChanged
        self.expressionLimits = expressionLimits
    }

    package var now: Timestamp { time.now }

    /// Takes up what was left; call it once the senders are there.
    package func resume() async {
        await dispatcher.resume()
        await jobs?.runner.wake()
    }

    /// Takes effect with the next request.
    package var settings: HubSettings {
        get { current.withLock { $0 } }
        set {
            current.withLock { $0 = newValue }
            settingsChanged(newValue)
        }
    }

    var registrationExpiry: Timestamp { settings.registrationTTL.map { time.now + $0 } ?? .never }

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
        try channels.check(content.handle)
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
        try channels.check(content.handle)
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

    package func registrationCount() async throws -> (registrations: Int, devices: Int) {
        try await store.registrationCount()
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
}

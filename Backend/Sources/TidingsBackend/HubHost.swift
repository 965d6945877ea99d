package import HubCore
import HubStore
package import JSONBytes
import ProcessLifecycle
import PushTelemetry
import SQLiteStorage
import Synchronization
package import TidingsModels

/// The hubs of a process: opens them, and keeps their catalog. Changes come one at a time.
package actor HubHost: HubManagement {
    /// What a host needs to open a hub.
    struct Factory: Sendable {
        /// Opens the hub's database and makes its dispatcher.
        let open: @Sendable (HubDescription) async throws -> (Hub, SQLiteHubStore)
        /// The senders of a description, those of `current` kept when nothing changed.
        let senders: @Sendable (HubDescription, SenderDirectory) throws -> [Platform: any PlatformSender]
        /// Whether an address that is not https may be a credential's.
        let isTrusted: @Sendable (String) -> Bool
        /// Removes the hub's files, which are closed.
        let removeFiles: @Sendable (HubDescription) throws -> Void
        /// Tells metrics and readiness of an open hub, and that it is gone.
        let opened: @Sendable (Hub, SQLiteHubStore) -> Void
        let closed: @Sendable (Hub) -> Void
    }

    /// Each open hub has threads of its own.
    private static let hubCountMax = 200

    private struct Open: Sendable {
        var hub: Hub
        var store: SQLiteHubStore
    }
    private struct State: Sendable {
        var open: [String: Open] = [:]
        var namespacePolicies: [AccessPolicy] = []
        var namespace = JSONObject()
    }

    private nonisolated let state: Mutex<State>
    private var catalog: HubCatalog
    private let factory: Factory
    private let time: any TimeSource

    init(_ catalog: HubCatalog, _ factory: Factory, time: any TimeSource) {
        self.catalog = catalog
        self.factory = factory
        self.time = time
        state = Mutex(State(namespacePolicies: catalog.namespacePolicies, namespace: catalog.namespace))
    }

    package nonisolated var namespacePolicies: [AccessPolicy] { state.withLock { $0.namespacePolicies } }
    package nonisolated var namespace: JSONObject { state.withLock { $0.namespace } }
    package nonisolated func hub(_ name: String) -> Hub? {
        state.withLock { $0.open[name.lowercased()]?.hub }
    }
    package nonisolated var hubs: [Hub] { state.withLock { $0.open.values.map(\.hub) } }
    nonisolated var stores: [SQLiteHubStore] { state.withLock { $0.open.values.map(\.store) } }

    // MARK: Start and stop

    /// Opens the hubs that the configuration names and those that were made through the API. Sends that an earlier run left are taken up.
    func start(configured names: [String]) async throws {
        for name in names where catalog[name]?.isConfigured != true {
            var description =
                catalog[name]?.description ?? HubDescription(name: name, created: time.now, updated: time.now)
            if description.policies.isEmpty {
                description.policies = HubCatalog.defaultPolicies(now: time.now)
            }
            try catalog.set(.init(description: description, isConfigured: true))
        }
        let configured = Set(names.map { $0.lowercased() })
        for (name, entry) in catalog.entries where !entry.isConfigured || configured.contains(name) {
            try await open(entry.description)
        }
        for hub in hubs { await hub.resume() }
    }

    private func open(_ description: HubDescription) async throws {
        let (hub, store) = try await factory.open(description)
        hub.dispatcher.replace(try factory.senders(description, hub.dispatcher.senders))
        state.withLock { $0.open[description.name.lowercased()] = Open(hub: hub, store: store) }
        factory.opened(hub, store)
    }

    nonisolated func stopDispatchers() async {
        for hub in hubs {
            await hub.dispatcher.stop()
            await hub.jobs?.runner.stop()
        }
    }
    nonisolated func close() { for store in stores { store.close() } }

    /// Makes the senders anew from what the descriptions and credential files say now. With an error nothing has changed.
    func reload() throws {
        var made: [(Hub, [Platform: any PlatformSender])] = []
        for hub in hubs {
            guard let entry = catalog[hub.name] else { continue }
            made.append((hub, try factory.senders(entry.description, hub.dispatcher.senders)))
        }
        for (hub, senders) in made { hub.dispatcher.replace(senders) }
    }

    // MARK: Management

    package func setNamespacePolicies(_ policies: [AccessPolicy]) throws -> [AccessPolicy] {
        try HubDescriptionRules.checkPolicies(policies)
        let new = completed(policies, over: catalog.namespacePolicies)
        try catalog.setNamespace(new, catalog.namespace)
        state.withLock { $0.namespacePolicies = new }
        return new
    }

    package func setNamespace(_ attributes: JSONObject) throws {
        try catalog.setNamespace(catalog.namespacePolicies, attributes)
        state.withLock { $0.namespace = attributes }
    }

    package func description(_ name: String) -> HubDescription? {
        hub(name) == nil ? nil : catalog[name]?.description
    }

    package func descriptions() -> [HubDescription] {
        hubs.compactMap { catalog[$0.name]?.description }.sorted {
            $0.name.lowercased() < $1.name.lowercased()
        }
    }

    package func create(_ description: HubDescription) async throws -> HubDescription {
        guard catalog[description.name] == nil else {
            throw HubError(.conflict, "SubCode=40900. Conflict: the hub '\(description.name)' exists already")
        }
        guard catalog.entries.count < Self.hubCountMax else {
            throw HubError(
                .throttled,
                "The namespace has \(Self.hubCountMax) hubs already; delete one first.",
                retryAfter: .seconds(60)
            )
        }
        var hub = description
        (hub.created, hub.updated) = (time.now, time.now)
        if hub.policies.isEmpty { hub.policies = HubCatalog.defaultPolicies(now: time.now) }
        hub.policies = completed(hub.policies, over: [])
        try check(hub, SenderDirectory())
        try catalog.set(.init(description: hub, isConfigured: false))
        do { try await open(hub) } catch {
            try? catalog.remove(hub.name)
            throw error
        }
        await self.hub(hub.name)?.resume()
        return hub
    }

    package func update(_ description: HubDescription) async throws -> HubDescription {
        guard let hub = hub(description.name), let old = catalog[description.name] else {
            throw Self.noHub(description.name)
        }
        var new = description
        (new.name, new.created, new.updated) = (old.description.name, old.description.created, time.now)
        // Without rules a hub would be out of reach.
        if new.policies.isEmpty { new.policies = old.description.policies }
        new.policies = completed(new.policies, over: old.description.policies)
        let senders = try check(new, hub.dispatcher.senders)
        try catalog.set(.init(description: new, isConfigured: old.isConfigured))
        hub.settings = HubSettings(new)
        hub.dispatcher.replace(senders)
        return new
    }

    package func delete(_ name: String) async throws {
        guard let open = state.withLock({ $0.open[name.lowercased()] }), let entry = catalog[name] else {
            throw Self.noHub(name)
        }
        guard !entry.isConfigured else {
            throw HubError(
                .conflict,
                "The hub '\(open.hub.name)' stands in the configuration; remove it there."
            )
        }
        try catalog.remove(name)
        state.withLock { $0.open[name.lowercased()] = nil }
        await open.hub.dispatcher.stop()
        await open.hub.jobs?.runner.stop()
        factory.closed(open.hub)
        open.store.close()
        try factory.removeFiles(entry.description)
    }

    @discardableResult
    private func check(
        _ hub: HubDescription,
        _ current: SenderDirectory
    ) throws -> [Platform: any PlatformSender] {
        try HubDescriptionRules.check(hub, isTrusted: factory.isTrusted)
        do { return try factory.senders(hub, current) } catch let error as ConfigurationError {
            throw HubError(.badRequest, "\(error)")
        }
    }

    /// A policy without keys gets new ones; what stays the same keeps its times.
    private func completed(_ policies: [AccessPolicy], over old: [AccessPolicy]) -> [AccessPolicy] {
        policies.map { policy in
            var policy = policy
            if policy.primaryKey.isEmpty { policy.primaryKey = HubCatalog.newKey() }
            if policy.secondaryKey.isEmpty { policy.secondaryKey = HubCatalog.newKey() }
            let before = old.first { $0.name == policy.name }
            policy.created = before?.created ?? time.now
            let isSame = before.map {
                ($0.primaryKey, $0.secondaryKey, $0.rights) == (
                    policy.primaryKey, policy.secondaryKey, policy.rights
                )
            }
            policy.modified = isSame == true ? before?.modified ?? time.now : time.now
            return policy
        }
    }

    private static func noHub(_ name: String) -> HubError {
        HubError(.notFound, "The hub '\(name)' does not exist.")
    }
}

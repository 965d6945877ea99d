package import JSONBytes
package import TidingsModels

/// The hubs of a namespace: made, changed and deleted while the server runs.
package protocol HubManagement: Sendable {
    /// The policies that hold at every hub.
    var namespacePolicies: [AccessPolicy] { get }
    /// On disk when it returns; keys that are empty are made.
    func setNamespacePolicies(_ policies: [AccessPolicy]) async throws -> [AccessPolicy]
    /// What an operator stated about the namespace: `name`, `location`, `tags`, `sku`.
    var namespace: JSONObject { get }
    func setNamespace(_ attributes: JSONObject) async throws
    /// A hub that is open; names compare without case.
    func hub(_ name: String) -> Hub?
    /// The description of a hub; nil when there is none.
    func description(_ name: String) async -> HubDescription?
    /// Every hub, by name.
    func descriptions() async -> [HubDescription]
    /// On disk, and the hub open, when it returns.
    /// - Throws: ``HubError`` `.conflict` when the hub is there, `.badRequest` by ``HubDescriptionRules``.
    func create(_ description: HubDescription) async throws -> HubDescription
    /// Replaces the whole description; pushes under way keep their credentials. Without policies those of before stay.
    /// - Throws: ``HubError`` `.notFound`, `.badRequest`.
    func update(_ description: HubDescription) async throws -> HubDescription
    /// Removes the hub with its registrations and notifications.
    /// - Throws: ``HubError`` `.notFound`, and `.conflict` for a hub of the configuration.
    func delete(_ name: String) async throws
}

/// What a hub's description decides about its requests. Replaced as a whole.
package struct HubSettings: Sendable {
    package var policies: [AccessPolicy]
    /// How long a registration lives after its last write; nil for ever.
    package var registrationTTL: Duration?
    package var isDisabled: Bool

    package init(policies: [AccessPolicy], registrationTTL: Duration? = nil, isDisabled: Bool = false) {
        self.policies = policies
        self.registrationTTL = registrationTTL
        self.isDisabled = isDisabled
    }

    package init(_ description: HubDescription) {
        self.init(
            policies: description.policies,
            registrationTTL: description.registrationTTL,
            isDisabled: description.isDisabled
        )
    }
}

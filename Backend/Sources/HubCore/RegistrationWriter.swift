package import TidingsModels

/// What a Listen key may do to registrations that are there.
package enum ListenMode: String, Sendable, CaseIterable {
    /// It changes and deletes those that no key with Manage made.
    case strict
    /// It changes and deletes every registration whose id it knows, as at the original.
    case original
}

/// Who writes a registration.
package struct RegistrationWriter: Sendable, Equatable {
    /// The key has Manage: what it makes is the back end's own.
    package var hasManage: Bool
    /// May change and delete what a key with Manage made.
    package var mayChangeManaged: Bool

    /// A key with these rights.
    package init(_ rights: AccessRights, _ mode: ListenMode) {
        hasManage = rights.contains(.manage)
        mayChangeManaged = hasManage || mode == .original
    }

    /// The hub itself, and whoever administers it.
    package static let manager = RegistrationWriter(.manage, .strict)

    /// - Throws: ``HubError`` `.unauthorized`: 401, since SDKs take 403 for throttling and repeat it.
    package func check(_ old: StoredRegistration?) throws(HubError) {
        guard let old else { return }
        try check(isManaged: old.isManaged, "The registration '\(old.registration.id)'")
    }

    package func check(isManaged: Bool, _ subject: @autoclosure () -> String) throws(HubError) {
        guard isManaged, !mayChangeManaged else { return }
        throw HubError(
            .unauthorized,
            "MissingClaim: \(subject()) was made with a key that has Manage; a Listen key may not change or "
                + "delete it here (listen: strict)."
        )
    }
}

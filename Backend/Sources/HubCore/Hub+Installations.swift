package import TidingsModels

extension Hub {
    /// Makes or replaces an installation; its registrations are in the index when this returns.
    package func put(_ installation: Installation, by writer: RegistrationWriter) async throws {
        var new = installation
        new.isChannelExpired = false
        for index in new.secondaryTiles.indices { new.secondaryTiles[index].isChannelExpired = false }
        if new.expires == .never { new.expires = registrationExpiry }
        try check(new)
        let made = new
        try await store.changeInstallation(made.id, by: writer, now: now, newID: newIDs) { _ in made }
    }

    /// - Throws: ``HubError`` `.notFound` when there is none; `.badRequest` with the operation at fault, and then nothing changed.
    package func patch(_ id: String, _ patch: InstallationPatch, by writer: RegistrationWriter) async throws {
        try await store.changeInstallation(id, by: writer, now: now, newID: newIDs) { [self] old in
            guard let old else { throw Self.noInstallation }
            let new = try patch.applied(to: old)
            try check(new)
            return new
        }
    }

    private func check(_ installation: Installation) throws(HubError) {
        try InstallationRules.check(installation)
        try channels.check(installation.handle)
        for tile in installation.secondaryTiles { try channels.check(tile.handle) }
    }

    /// Also when there is none, as at the original.
    package func deleteInstallation(_ id: String, by writer: RegistrationWriter) async throws {
        try await store.changeInstallation(id, by: writer, now: now, newID: newIDs) { _ in nil }
    }

    package func installation(_ id: String) async throws -> Installation {
        guard let found = try await store.installation(id, now: now) else { throw Self.noInstallation }
        return found
    }

    private static var noInstallation: HubError { HubError(.notFound, "Installation not found") }

    private var newIDs: @Sendable () -> RegistrationID { { [self] in newRegistrationID() } }
}

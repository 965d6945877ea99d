import HubAPI
import JSONBytes
package import TidingsModels

/// What a hub makes of an installation: one native registration, one for each template, and the same for each secondary tile
/// (protocol reference, section 4.6).
package enum InstallationRules {
    /// A registration that an installation stands for.
    package struct Derived: Equatable, Sendable {
        package var slot: InstallationSlot
        package var content: RegistrationContent
    }

    /// Registrations of one installation; more templates and tiles are refused.
    package static let derivedCountMax = 200

    package static func check(_ installation: Installation) throws(HubError) {
        var live = installation
        live.isChannelExpired = false
        for index in live.secondaryTiles.indices { live.secondaryTiles[index].isChannelExpired = false }
        let derived = derived(live)
        guard derived.count <= derivedCountMax else {
            throw HubError(
                .badRequest,
                "The installation has \(derived.count) templates and tiles together, at most \(derivedCountMax - 1) are allowed."
            )
        }
        for row in derived {
            do throws(HubError) {
                try RegistrationRules.checkContent(row.content)
            } catch {
                guard let template = row.slot.template else { throw error }
                let path = (row.slot.tile.map { "secondaryTiles/\($0)/" } ?? "") + "templates/\(template)"
                throw HubError(error.code, "\(path): \(error.message)")
            }
        }
    }

    /// The registrations, without those whose channel is dead.
    package static func derived(_ installation: Installation) -> [Derived] {
        let owner = [HubTag.installation(installation.id), installation.userID.flatMap { HubTag.user($0) }]
            .compactMap(\.self)
        var rows: [Derived] = []
        func add(
            _ handle: PlatformHandle,
            _ tags: [HubTag],
            _ templates: [InstallationTemplate],
            tile: String?
        ) {
            func add(_ template: InstallationTemplate?) {
                let own = template.map { $0.tags + [HubTag(unchecked: $0.name)] } ?? []
                rows.append(
                    Derived(
                        slot: InstallationSlot(
                            installation: installation.id,
                            tile: tile,
                            template: template?.name
                        ),
                        content: RegistrationContent(
                            handle: handle,
                            tags: unique(owner + tags + own),
                            pushVariables: installation.pushVariables,
                            template: template.map {
                                RegistrationTemplate(
                                    name: $0.name,
                                    body: $0.body,
                                    headers: $0.headers,
                                    expiry: $0.expiry
                                )
                            },
                            secondaryTileName: tile
                        )
                    )
                )
            }
            add(nil)
            for template in templates { add(template) }
        }
        if !installation.isChannelExpired {
            add(installation.handle, installation.tags, installation.templates, tile: nil)
        }
        for tile in installation.secondaryTiles where !tile.isChannelExpired {
            add(tile.handle, tile.tags, tile.templates, tile: tile.name)
        }
        return rows
    }

    private static func unique(_ tags: [HubTag]) -> [HubTag] {
        var seen = Set<HubTag>()
        return tags.filter { seen.insert($0).inserted }
    }

    /// The installation once the platform called the channel of a slot dead.
    package static func expired(_ installation: Installation, _ slot: InstallationSlot) -> Installation {
        changing(installation, slot) { _, isExpired in isExpired = true }
    }

    /// The installation once the platform gave the channel of a slot another handle.
    package static func moved(
        _ installation: Installation,
        _ slot: InstallationSlot,
        to new: PlatformHandle
    ) -> Installation {
        changing(installation, slot) { handle, _ in handle = new }
    }

    /// Changes the channel of a slot: the installation's own, or that of a tile.
    private static func changing(
        _ installation: Installation,
        _ slot: InstallationSlot,
        _ change: (_ handle: inout PlatformHandle, _ isExpired: inout Bool) -> Void
    ) -> Installation {
        var new = installation
        guard let tile = slot.tile else {
            change(&new.handle, &new.isChannelExpired)
            return new
        }
        for index in new.secondaryTiles.indices where new.secondaryTiles[index].name == tile {
            var tile = new.secondaryTiles[index]
            change(&tile.handle, &tile.isChannelExpired)
            new.secondaryTiles[index] = tile
        }
        return new
    }

    // MARK: Records

    private static let recordVersion: UInt8 = 1

    /// The stored form: a version byte and the JSON of the protocol.
    package static func record(_ installation: Installation) -> [UInt8] {
        [recordVersion] + InstallationJSON.value(installation).serialized()
    }

    /// Nil when the bytes are not a record of a version that this program knows.
    package static func installation(record: [UInt8], id: String) -> Installation? {
        guard record.first == recordVersion else { return nil }
        return try? InstallationJSON.read(Array(record.dropFirst()), id: id)
    }
}

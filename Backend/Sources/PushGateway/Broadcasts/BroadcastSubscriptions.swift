import DeviceLink

/// The broadcasts that one device follows, each with the version that it has or was told.
struct BroadcastSubscriptions {
    private var versions: [BroadcastID: String] = [:]

    /// Takes up what a device says it has, and returns what it does not have.
    /// - Throws: ``LinkViolation`` when it follows too many; they are in the table until ``end(of:in:)``.
    mutating func add(
        _ known: [BroadcastID: String],
        of connection: DeviceConnection,
        in table: BroadcastTable
    ) throws(LinkViolation) -> BroadcastNews {
        guard !known.isEmpty else { return BroadcastNews() }
        let found = table.subscribe(connection, to: known.keys)
        versions.merge(found.versions) { $1 }
        guard versions.count <= BroadcastID.countMaxPerDevice else {
            throw LinkViolation.state("more than \(BroadcastID.countMaxPerDevice) broadcasts are followed")
        }
        return BroadcastNews(
            versions: found.versions.filter { known[$0.key] != $0.value },
            unknown: found.unknown
        )
    }

    /// True when the device does not have this version yet; from then on it counts as told.
    mutating func isNews(_ id: BroadcastID, _ version: String) -> Bool {
        // An answer may have told it between the change and its arrival on the loop.
        guard let told = versions[id], told != version else { return false }
        versions[id] = version
        return true
    }

    mutating func end(of connection: DeviceConnection, in table: BroadcastTable) {
        guard !versions.isEmpty else { return }
        table.unsubscribe(connection, from: versions.keys)
        versions = [:]
    }
}

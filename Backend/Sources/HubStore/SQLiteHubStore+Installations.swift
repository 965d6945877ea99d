package import HubCore
import SQLiteStorage
package import TidingsModels

private struct StoredInstallation {
    var installation: Installation
    var isManaged: Bool
}

extension SQLiteHubStore {
    package func changeInstallation(
        _ id: String,
        by writer: RegistrationWriter,
        now: Timestamp,
        newID: @escaping @Sendable () -> RegistrationID,
        _ change: @escaping @Sendable (Installation?) throws -> Installation?
    ) async throws {
        let quota = quota
        _ = try await write { connection in
            let old = try connection.installation(id)
            if let old { try writer.check(isManaged: old.isManaged, "The installation '\(id)'") }
            let isLive = old.map { $0.installation.expires > now } ?? false
            guard let new = try change(isLive ? old?.installation : nil) else {
                try connection.run("DELETE FROM installation WHERE id = ?1", .text(id))
                return try connection.replaceRows(
                    of: id,
                    with: [],
                    .never,
                    isManaged: false,
                    now: now,
                    newID,
                    quota
                )
            }
            let isManaged = old?.isManaged ?? writer.hasManage
            try connection.save(new, isManaged: isManaged)
            let rows = InstallationRules.derived(new)
            return try connection.replaceRows(
                of: id,
                with: rows,
                new.expires,
                isManaged: isManaged,
                now: now,
                newID,
                quota
            )
        }
    }

    package func installation(_ id: String, now: Timestamp) async throws -> Installation? {
        try await database.read { connection in
            guard let found = try connection.installation(id)?.installation, found.expires > now else {
                return nil
            }
            return found
        }
    }

    package func registrationCount() async throws -> (registrations: Int, devices: Int) {
        try await database.read { connection in
            try connection.row("SELECT count(*), count(DISTINCT handle_key) FROM registration") {
                (row) throws(SQLiteError) in (Int(row.integer(0)), Int(row.integer(1)))
            } ?? (0, 0)
        }
    }

    /// At most so many rows per call, so that a sweep does not hold the writer.
    private static let sweepCountMax = 1000

    package func removeExpired(now: Timestamp) async throws -> Int {
        try await write { connection in
            var written = Written()
            let rows = try connection.records(
                "SELECT number, change, record, 0 FROM registration WHERE expires <= ?1 LIMIT ?2",
                .integer(now.milliseconds),
                .integer(Int64(Self.sweepCountMax))
            )
            for row in rows { written.changes += try connection.remove(row).changes }
            // The registrations of an installation end with it.
            try connection.run("DELETE FROM installation WHERE expires <= ?1", .integer(now.milliseconds))
            return written
        }.changes.count
    }
}

extension Connection {
    fileprivate func installation(_ id: String) throws(SQLiteError) -> StoredInstallation? {
        let row = try row("SELECT is_managed, record FROM installation WHERE id = ?1", .text(id)) {
            (row) throws(SQLiteError) in (row.integer(0) == 1, row.blob(1))
        }
        guard let (isManaged, record) = row else { return nil }
        guard let installation = InstallationRules.installation(record: record, id: id) else {
            throw SQLiteError(
                code: 11,
                message: "installation '\(id)' has a record that this program cannot read"
            )
        }
        return StoredInstallation(installation: installation, isManaged: isManaged)
    }

    fileprivate func save(_ installation: Installation, isManaged: Bool) throws(SQLiteError) {
        try run(
            """
            INSERT INTO installation (id, is_managed, expires, record) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (id) DO UPDATE SET expires = ?3, record = ?4
            """,
            .text(installation.id),
            .integer(isManaged ? 1 : 0),
            installation.expires == .never ? .null : .integer(installation.expires.milliseconds),
            .blob(InstallationRules.record(installation))
        )
    }

    private func rows(of installation: String) throws(SQLiteError) -> [StoredRegistration] {
        try records(
            "SELECT number, change, record, 0 FROM registration WHERE installation = ?1 ORDER BY number",
            .text(installation)
        )
    }

    /// Rows whose slot stays keep their number and id; rows that are the same stay untouched.
    fileprivate func replaceRows(
        of id: String,
        with derived: [InstallationRules.Derived],
        _ expires: Timestamp,
        isManaged: Bool,
        now: Timestamp,
        _ newID: () -> RegistrationID,
        _ quota: RegistrationQuota
    ) throws -> Written {
        var written = Written()
        var old: [InstallationSlot: StoredRegistration] = [:]
        for row in try rows(of: id) {
            if let slot = row.slot { old[slot] = row }
        }
        for row in derived {
            let before = old.removeValue(forKey: row.slot)
            if let before, before.registration.content == row.content, before.registration.expires == expires
            {
                continue
            }
            let new = NewRegistration(
                id: before?.registration.id ?? newID(),
                content: row.content,
                expires: expires,
                isManaged: isManaged,
                slot: row.slot
            )
            written.changes += try write(new, over: before, now: now, quota).changes
        }
        for row in old.values.sorted(by: { $0.number < $1.number }) {
            written.changes += try remove(row).changes
        }
        return written
    }

    /// Gives a row another handle; it keeps its number and its id.
    func move(
        _ old: StoredRegistration,
        to handle: PlatformHandle,
        now: Timestamp,
        _ quota: RegistrationQuota
    ) throws -> Written {
        var content = old.registration.content
        content.handle = handle
        let new = NewRegistration(
            id: old.registration.id,
            content: content,
            expires: old.registration.expires,
            isManaged: old.isManaged,
            slot: old.slot
        )
        return try write(new, over: old, now: now, quota)
    }

    /// Gives the channel of a slot another handle, in the installation and in the rows that need it.
    func moveChannel(
        _ slot: InstallationSlot,
        to handle: PlatformHandle,
        now: Timestamp,
        _ quota: RegistrationQuota
    ) throws -> Written {
        if let stored = try installation(slot.installation) {
            try save(
                InstallationRules.moved(stored.installation, slot, to: handle),
                isManaged: stored.isManaged
            )
        }
        var written = Written()
        for row in try rows(of: slot.installation) where row.slot?.tile == slot.tile {
            written.changes += try move(row, to: handle, now: now, quota).changes
        }
        return written
    }

    /// Notes that the channel of a slot is dead, and removes the rows that need it.
    func expireChannel(_ slot: InstallationSlot) throws -> Written {
        if let stored = try installation(slot.installation) {
            try save(InstallationRules.expired(stored.installation, slot), isManaged: stored.isManaged)
        }
        var written = Written()
        for row in try rows(of: slot.installation) where row.slot?.tile == slot.tile {
            written.changes += try remove(row).changes
        }
        return written
    }
}

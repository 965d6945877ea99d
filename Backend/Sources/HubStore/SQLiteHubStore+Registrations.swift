package import HubCore
import SQLiteStorage
package import TidingsModels

/// What a write did, for the index.
struct Written: Sendable {
    var registration: Registration?
    var changes: [IndexChange] = []
}

/// A row to be written.
struct NewRegistration {
    var id: RegistrationID
    var content: RegistrationContent
    var expires: Timestamp
    var isManaged: Bool
    var slot: InstallationSlot?
}

extension SQLiteHubStore: RegistrationStore {
    package func put(
        _ id: RegistrationID,
        _ content: RegistrationContent,
        _ condition: EntityCondition,
        by writer: RegistrationWriter,
        expires: Timestamp,
        now: Timestamp
    ) async throws -> Registration {
        let quota = quota
        let written = try await write { connection in
            let old = try connection.stored(id)
            try writer.check(old)
            try condition.check(
                existing: old.flatMap { $0.registration.expires > now ? $0.registration.etag : nil }
            )
            if let old, let slot = old.slot {
                guard old.registration.content == content else {
                    throw HubError(
                        .badRequest,
                        "The registration '\(id)' stands for the installation '\(slot.installation)'; change that one."
                    )
                }
                return Written(registration: old.registration)
            }
            let row = NewRegistration(
                id: id,
                content: content,
                expires: expires,
                isManaged: old?.isManaged ?? writer.hasManage,
                slot: nil
            )
            return try connection.write(row, over: old, now: now, quota)
        }
        guard let registration = written.registration else {
            throw HubError(.internalError, "The write returned nothing.")
        }
        return registration
    }

    package func delete(
        _ id: RegistrationID,
        _ condition: EntityCondition,
        by writer: RegistrationWriter
    ) async throws {
        _ = try await write { connection in
            let old = try connection.stored(id)
            try writer.check(old)
            try condition.check(existing: old?.registration.etag)
            guard let old else { return Written() }
            return try connection.remove(old)
        }
    }

    package func removeDead(_ number: UInt32, change: Int64) async throws -> Bool {
        try await !write { connection in
            guard let old = try connection.stored(number: number), old.change == change else {
                return Written()
            }
            guard let slot = old.slot else { return try connection.remove(old) }
            return try connection.expireChannel(slot)
        }.changes.isEmpty
    }

    package func replaceHandle(
        _ number: UInt32,
        change: Int64,
        with handle: PlatformHandle,
        now: Timestamp
    ) async throws -> Bool {
        let quota = quota
        return try await !write { connection in
            guard let old = try connection.stored(number: number), old.change == change else {
                return Written()
            }
            guard let slot = old.slot else { return try connection.move(old, to: handle, now: now, quota) }
            return try connection.moveChannel(slot, to: handle, now: now, quota)
        }.changes.isEmpty
    }

    func write(_ body: @escaping @Sendable (Connection) throws -> Written) async throws -> Written {
        let (index, quota) = (audienceIndex, quota)
        return try await database.write(
            onCommit: {
                for change in $0.changes {
                    index.apply(change)
                    quota.follow(change)
                }
            },
            body
        )
    }

    package func registration(_ id: RegistrationID, now: Timestamp) async throws -> Registration? {
        try await database.read { connection in
            guard let found = try connection.stored(id)?.registration, found.expires > now else { return nil }
            return found
        }
    }

    package func registrations(
        _ filter: RegistrationFilter,
        after: UInt32?,
        countMax: Int,
        now: Timestamp
    ) async throws -> RegistrationPage {
        let tagged = TaggedNumbers(filter, audienceIndex)
        return try await database.read { connection in
            var found: [(number: UInt32, registration: Registration)] = []
            var last = after.map { Int64($0) } ?? -1
            // A page is filled from batches, since the filter looks into the records.
            while found.count <= countMax {
                let batch = try connection.batch(filter, after: last, tagged)
                for record in batch.records
                where record.registration.expires > now && Self.matches(record.registration, filter) {
                    found.append((record.number, record.registration))
                }
                guard let end = batch.end else { break }
                last = end
            }
            let page = found.prefix(countMax)
            return RegistrationPage(
                registrations: page.map(\.registration),
                next: found.count > countMax ? page.last?.number : nil
            )
        }
    }

    private static func matches(_ registration: Registration, _ filter: RegistrationFilter) -> Bool {
        switch filter {
        case .all: true
        case .handle(let text, let platform):
            (platform == nil || registration.content.handle.platform == platform)
                && (registration.content.handle.platform == .apns
                    ? registration.content.handle.text.lowercased() == text.lowercased()
                    : registration.content.handle.text == text)
        case .tag(let tag): registration.content.tags.contains(tag)
        }
    }

    package func stored(_ numbers: [UInt32]) async throws -> [StoredRegistration] {
        try await database.read { connection in
            var records: [StoredRegistration] = []
            records.reserveCapacity(numbers.count)
            for number in numbers {
                if let record = try connection.stored(number: number) { records.append(record) }
            }
            return records
        }
    }

    package func siblings(_ handle: PlatformHandle) async throws -> [StoredRegistration] {
        try await database.read { connection in
            try connection.records(
                "SELECT number, change, record, 0 FROM registration WHERE handle_key = ?1 ORDER BY number",
                .integer(handleKey(handle))
            ).filter {
                let other = $0.registration.content.handle
                return other.platform == handle.platform && other.text == handle.text
            }
        }
    }
}

extension Connection {
    func stored(_ id: RegistrationID) throws(SQLiteError) -> StoredRegistration? {
        try records("SELECT number, change, record, 0 FROM registration WHERE id = ?1", .text(id.text)).first
    }

    fileprivate func stored(number: UInt32) throws(SQLiteError) -> StoredRegistration? {
        try records(
            """
            SELECT number, change, record,
                EXISTS (SELECT 1 FROM registration lower WHERE lower.handle_key = registration.handle_key AND lower.number < ?1)
            FROM registration WHERE number = ?1
            """,
            .integer(Int64(number))
        ).first
    }

    /// The next records that may fit, and the number that they reach to; nil when there are none.
    fileprivate func batch(
        _ filter: RegistrationFilter,
        after: Int64,
        _ tagged: TaggedNumbers?
    ) throws(SQLiteError) -> (records: [StoredRegistration], end: Int64?) {
        if let tagged {
            let numbers = tagged.numbers(after: after)
            var records: [StoredRegistration] = []
            for number in numbers {
                if let record = try stored(number: number) { records.append(record) }
            }
            return (records, numbers.last.map { Int64($0) })
        }
        let records = try batch(filter, after: after)
        return (records, records.last.map { Int64($0.number) })
    }

    private func batch(
        _ filter: RegistrationFilter,
        after: Int64
    ) throws(SQLiteError) -> [StoredRegistration] {
        let columns = "SELECT number, change, record, 0 FROM registration WHERE number > ?1"
        guard case .handle(let text, let platform) = filter else {
            return try records("\(columns) ORDER BY number LIMIT 500", .integer(after))
        }
        // The handle's hash is known for each platform that it could belong to.
        let platforms = platform.map { [$0] } ?? Platform.allCases
        var found: [StoredRegistration] = []
        for platform in platforms {
            let stored = platform == .apns ? text.uppercased() : text
            let key = handleKey(PlatformHandle(unchecked: stored, platform: platform))
            found += try records(
                "\(columns) AND handle_key = ?2 ORDER BY number LIMIT 500",
                .integer(after),
                .integer(key)
            )
        }
        // No further than each platform's rows reach.
        return Array(found.sorted { $0.number < $1.number }.prefix(500))
    }

    func records(
        _ sql: String,
        _ arguments: SQLiteValue...
    ) throws(SQLiteError) -> [StoredRegistration] {
        let statement = try statement(sql)
        defer { statement.reset() }
        try statement.bind(arguments)
        var records: [StoredRegistration] = []
        while try statement.step() {
            guard let (registration, isManaged, slot) = RegistrationRecord.decode(statement.blob(2)) else {
                throw SQLiteError(
                    code: 11,
                    message: "registration \(statement.integer(0)) has a record that this program cannot read"
                )
            }
            records.append(
                StoredRegistration(
                    number: UInt32(truncatingIfNeeded: statement.integer(0)),
                    change: statement.integer(1),
                    registration: registration,
                    hasLowerSibling: statement.integer(3) == 1,
                    isManaged: isManaged,
                    slot: slot
                )
            )
        }
        return records
    }

    func remove(_ old: StoredRegistration) throws -> Written {
        let change = try nextChange()
        try run("DELETE FROM registration WHERE number = ?1", .integer(Int64(old.number)))
        try run(
            "INSERT INTO freed (number, change) VALUES (?1, ?2)",
            .integer(Int64(old.number)),
            .integer(change)
        )
        let gone = IndexChange(
            number: old.number,
            old: IndexEntry(old.registration.content),
            new: nil,
            change: change
        )
        return Written(changes: [gone])
    }

    /// Writes a row over an old one, or as a new one.
    func write(
        _ row: NewRegistration,
        over old: StoredRegistration?,
        now: Timestamp,
        _ quota: RegistrationQuota
    ) throws -> Written {
        if old == nil { try quota.check() }
        let registration = Registration(
            id: row.id,
            etag: (old.flatMap { $0.registration.expires > now ? $0.registration.etag : nil } ?? 0) + 1,
            expires: row.expires,
            updated: now,
            content: row.content
        )
        let number = try old?.number ?? takeNumber()
        let change = try nextChange()
        try run(
            """
            INSERT INTO registration (number, id, handle_key, change, record, installation, expires) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
            ON CONFLICT (number) DO UPDATE SET handle_key = ?3, change = ?4, record = ?5, expires = ?7
            """,
            .integer(Int64(number)),
            .text(row.id.text),
            .integer(handleKey(row.content.handle)),
            .integer(change),
            .blob(RegistrationRecord.encode(registration, isManaged: row.isManaged, slot: row.slot)),
            .optional(row.slot?.installation),
            row.expires == .never ? .null : .integer(row.expires.milliseconds)
        )
        let written = IndexChange(
            number: number,
            old: old.map { IndexEntry($0.registration.content) },
            new: IndexEntry(row.content),
            change: change
        )
        return Written(registration: registration, changes: [written])
    }
}

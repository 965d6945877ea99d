package import HubCore
package import SQLiteStorage
import TidingsModels

/// One hub's registrations and sends in one SQLite database. The audience index follows each commit before the
/// caller has its answer.
package final class SQLiteHubStore: Sendable {
    /// Notifications that may be scheduled at a time; more are refused.
    package static let scheduledCountMax = 100_000

    package let database: Database
    private let index: any AudienceIndex
    let quota: RegistrationQuota
    /// The index that follows this store.
    package var audienceIndex: any AudienceIndex { index }

    /// Opens or makes the database and fills the index with what it holds.
    ///
    /// - Parameter registrationCountMax: The most registrations; nil for as many as can be numbered.
    package init(path: String, index: any AudienceIndex, registrationCountMax: Int? = nil) async throws {
        let quota = RegistrationQuota(countMax: registrationCountMax)
        self.quota = quota
        database = try Database(path: path, schema: .hub)
        self.index = index
        try await database.read { connection in
            var last: Int64 = -1
            while true {
                let rows = try connection.rows(
                    "SELECT number, change, record FROM registration WHERE number > ?1 ORDER BY number LIMIT 10000",
                    .integer(last)
                ) { (row) throws(SQLiteError) in (row.integer(0), row.integer(1), row.blob(2)) }
                for (number, change, record) in rows {
                    guard let (registration, _, _) = RegistrationRecord.decode(record),
                        let number = UInt32(exactly: number)
                    else {
                        throw SQLiteError(
                            code: 11,
                            message: "registration \(number) has a record that this program cannot read"
                        )
                    }
                    let loaded = IndexChange(
                        number: number,
                        old: nil,
                        new: IndexEntry(registration.content),
                        change: change
                    )
                    index.apply(loaded)
                    quota.follow(loaded)
                }
                guard let row = rows.last else { return }
                last = row.0
            }
        }
    }

    /// Ends the database's threads.
    package func close() { database.close() }
}

extension Connection {
    func nextChange() throws(SQLiteError) -> Int64 {
        try run("UPDATE counter SET value = value + 1 WHERE name = 'change'")
        return try row("SELECT value FROM counter WHERE name = 'change'") { (row) throws(SQLiteError) in
            row.integer(0)
        } ?? 0
    }

    /// A free number: one that was freed before every live send was resolved, else a new one.
    func takeNumber() throws -> UInt32 {
        let floor = try row("SELECT MIN(change) FROM send WHERE live > 0 AND change IS NOT NULL") {
            (row) throws(SQLiteError) in
            row.isNull(0) ? Int64.max : row.integer(0)
        }
        // A send resolved at or after the freeing cannot hold the number.
        let freed = try row("SELECT number FROM freed WHERE change <= ?1 LIMIT 1", .integer(floor ?? .max)) {
            (row) throws(SQLiteError) in row.integer(0)
        }
        if let freed {
            try run("DELETE FROM freed WHERE number = ?1", .integer(freed))
            return UInt32(truncatingIfNeeded: freed)
        }
        try run("UPDATE counter SET value = value + 1 WHERE name = 'number'")
        let number =
            try row("SELECT value FROM counter WHERE name = 'number'") { (row) throws(SQLiteError) in
                row.integer(0)
            } ?? 0
        guard let number = UInt32(exactly: number) else {
            throw HubError(
                .throttled,
                "The hub holds as many registrations as it can number (4,294,967,295).",
                retryAfter: .seconds(3600)
            )
        }
        return number
    }
}

/// A hash of platform and handle that stays the same between runs (FNV-1a, 64 bits).
func handleKey(_ handle: PlatformHandle) -> Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in handle.platform.rawValue.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    hash = (hash ^ 0xFF) &* 0x100_0000_01B3
    for byte in handle.text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return Int64(bitPattern: hash)
}

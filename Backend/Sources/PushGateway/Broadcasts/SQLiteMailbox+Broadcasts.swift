package import DeviceLink
import SQLiteStorage

extension SQLiteMailbox {
    package func broadcasts() async throws -> [BroadcastID: String] {
        let rows = try await database.read { connection in
            try connection.rows("SELECT id, version FROM broadcast") { (row) throws(SQLiteError) in
                (row.text(0), row.text(1))
            }
        }
        var versions: [BroadcastID: String] = [:]
        for (text, version) in rows {
            guard let id = BroadcastID(text) else {
                throw SQLiteError(code: 11, message: "'\(text)' is not the id of a broadcast")
            }
            versions[id] = version
        }
        return versions
    }

    package func setBroadcast(
        _ id: BroadcastID,
        version: String,
        onCommit: @escaping @Sendable () -> Void
    ) async throws -> Bool {
        try await database.write(onCommit: { if $0 { onCommit() } }) { connection in
            let count = try connection.row("SELECT COUNT(*) FROM broadcast WHERE id <> ?1", .text(id.text)) {
                (row) throws(SQLiteError) in row.integer(0)
            }
            guard count ?? 0 < BroadcastTable.countMax else { return false }
            try connection.run(
                "INSERT INTO broadcast (id, version) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET version = ?2",
                .text(id.text),
                .text(version)
            )
            return true
        }
    }

    package func removeBroadcast(
        _ id: BroadcastID,
        onCommit: @escaping @Sendable () -> Void
    ) async throws -> Bool {
        try await database.write(onCommit: { if $0 { onCommit() } }) { connection in
            try connection.run("DELETE FROM broadcast WHERE id = ?1", .text(id.text))
            return connection.changedRowCount > 0
        }
    }
}

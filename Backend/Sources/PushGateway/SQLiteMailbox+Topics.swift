import DeviceLink
import SQLiteStorage
package import TidingsModels

extension SQLiteMailbox {
    /// Topics of one handle, as at Google.
    package static let topicCountMax = 2000

    package func subscribe(_ handle: PlatformHandle, to topic: String) async throws -> Bool {
        try await database.write { connection in
            let count = try connection.row(
                "SELECT COUNT(*) FROM topic WHERE handle = ?1 AND topic <> ?2",
                .text(handle.text),
                .text(topic)
            ) { (row) throws(SQLiteError) in row.integer(0) }
            guard count ?? 0 < Self.topicCountMax else { return false }
            try connection.run(
                "INSERT OR IGNORE INTO topic (topic, handle) VALUES (?1, ?2)",
                .text(topic),
                .text(handle.text)
            )
            return true
        }
    }

    package func unsubscribe(_ handle: PlatformHandle, from topic: String) async throws -> Bool {
        try await database.write { connection in
            try connection.run(
                "DELETE FROM topic WHERE topic = ?1 AND handle = ?2",
                .text(topic),
                .text(handle.text)
            )
            return connection.changedRowCount > 0
        }
    }

    package func topics(of handle: PlatformHandle) async throws -> [String] {
        try await database.read { connection in
            try connection.rows(
                "SELECT topic FROM topic WHERE handle = ?1 ORDER BY topic",
                .text(handle.text)
            ) {
                (row) throws(SQLiteError) in row.text(0)
            }
        }
    }

    package func subscribers(of topic: String) async throws -> [PlatformHandle] {
        try await database.read { connection in
            try connection.rows("SELECT handle FROM topic WHERE topic = ?1", .text(topic)) {
                (row) throws(SQLiteError) in PlatformHandle(unchecked: row.text(0), platform: .fcmV1)
            }
        }
    }

    package func liveHandles(_ platform: Platform) async throws -> [PlatformHandle] {
        try await database.read { connection in
            try connection.rows(
                "SELECT handle FROM channel WHERE platform = ?1 AND removed IS NULL",
                .text(platform.rawValue)
            ) { (row) throws(SQLiteError) in PlatformHandle(unchecked: row.text(0), platform: platform) }
        }
    }

    package func remove(
        _ handle: PlatformHandle,
        where fits: @escaping @Sendable ([String: String]) -> Bool
    ) async throws -> Int {
        try await database.write { connection in
            guard case .live(let uaid, let channelID)? = try connection.owner(handle) else { return 0 }
            let waiting = try connection.rows(
                "SELECT sequence, frame FROM message WHERE uaid = ?1 AND channel_id = ?2",
                .text(uaid),
                .text(channelID)
            ) { (row) throws(SQLiteError) in (row.integer(0), row.text(1)) }
            var count = 0
            for (sequence, frame) in waiting {
                guard case .notification(let notification)? = try? GatewayFrame(parsing: frame),
                    fits(notification.headers)
                else { continue }
                try connection.run("DELETE FROM message WHERE sequence = ?1", .integer(sequence))
                count += 1
            }
            return count
        }
    }
}

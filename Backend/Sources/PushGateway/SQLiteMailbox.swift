import DeviceLink
import PushCredentials
package import SQLiteStorage
package import TidingsModels

/// The mailbox in one SQLite database.
package final class SQLiteMailbox: Mailbox {
    /// Messages that may wait for one device; more are refused.
    package static let messageCountMaxPerDevice = 1000
    /// For so long a repeat of a delivery id is recognised.
    private static let deliveryMemory = Duration.seconds(24 * 3600)

    package let database: Database

    package init(path: String) throws {
        database = try Database(path: path, schema: .mailbox)
    }

    package func close() { database.close() }

    package func register(
        uaid: String,
        channelID: String,
        platform: Platform,
        handle: PlatformHandle,
        now: Timestamp
    ) async throws -> PlatformHandle {
        try await database.write { connection in
            let known = try connection.row(
                "SELECT platform, handle FROM channel WHERE uaid = ?1 AND channel_id = ?2 AND removed IS NULL",
                .text(uaid),
                .text(channelID)
            ) { (row) throws(SQLiteError) in (row.text(0), row.text(1)) }
            if let known, known.0 == platform.rawValue {
                let known = PlatformHandle(unchecked: known.1, platform: platform)
                if WebPushEndpoint(known)?.keyHash == WebPushEndpoint(handle)?.keyHash { return known }
            }
            // Another platform or key on the same channel: the old handle is given back.
            try connection.giveBack(uaid, channelID, now)
            try connection.run(
                "INSERT INTO channel (platform, handle, uaid, channel_id, created) VALUES (?1, ?2, ?3, ?4, ?5)",
                .text(platform.rawValue),
                .text(handle.text),
                .text(uaid),
                .text(channelID),
                .integer(now.milliseconds)
            )
            return handle
        }
    }

    package func unregister(uaid: String, channelID: String, now: Timestamp) async throws {
        try await database.write { connection in
            try connection.giveBack(uaid, channelID, now)
            try connection.run(
                "DELETE FROM message WHERE uaid = ?1 AND channel_id = ?2",
                .text(uaid),
                .text(channelID)
            )
        }
    }

    package func isKnown(uaid: String) async throws -> Bool {
        try await database.read { connection in
            try connection.row("SELECT 1 FROM channel WHERE uaid = ?1 LIMIT 1", .text(uaid)) {
                (row) throws(SQLiteError) in true
            } ?? false
        }
    }

    package func owner(_ handle: PlatformHandle) async throws -> HandleOwner? {
        try await database.read { try $0.owner(handle) }
    }

    package func post(_ message: GatewayMessage, version: String, now: Timestamp) async throws -> Posted {
        // The repeat of a Web Push message is encrypted anew: its bytes say nothing.
        let body = message.handle.platform == .browser ? [] : message.data
        let bodyHash = Array(Digests.sha256(body).prefix(16))
        return try await database.write { connection in
            switch try connection.owner(message.handle) {
            case nil: return Posted(result: .unknownHandle)
            case .removed(let since)?: return Posted(result: .expiredHandle(since: since))
            case .live(let uaid, let channelID)?:
                if let id = message.deliveryID {
                    try connection.run(
                        "INSERT OR IGNORE INTO delivery (handle, id, body_hash, forget) VALUES (?1, ?2, ?3, ?4)",
                        .text(message.handle.text),
                        .text(id),
                        .blob(bodyHash),
                        .integer((now + Self.deliveryMemory).milliseconds)
                    )
                    if connection.changedRowCount == 0 { return Posted(result: .repeated) }
                }
                guard let expires = message.expires else {
                    return Posted(result: .accepted(messageID: version), uaid: uaid)
                }
                if let key = message.collapseKey {
                    try connection.run(
                        "DELETE FROM message WHERE uaid = ?1 AND channel_id = ?2 AND collapse_key = ?3",
                        .text(uaid),
                        .text(channelID),
                        .text(key)
                    )
                }
                let count = try connection.row("SELECT COUNT(*) FROM message WHERE uaid = ?1", .text(uaid)) {
                    (row) throws(SQLiteError) in row.integer(0)
                }
                guard count ?? 0 < Self.messageCountMaxPerDevice else {
                    if let id = message.deliveryID {
                        // Refused: the provider's next try is no repeat.
                        try connection.run(
                            "DELETE FROM delivery WHERE handle = ?1 AND id = ?2 AND body_hash = ?3",
                            .text(message.handle.text),
                            .text(id),
                            .blob(bodyHash)
                        )
                    }
                    return Posted(result: .full)
                }
                let notification = DeviceNotification(
                    channelID: channelID,
                    version: version,
                    platform: message.linkPlatform,
                    headers: message.headers,
                    data: message.data
                )
                try connection.run(
                    """
                    INSERT INTO message (uaid, channel_id, version, collapse_key, expires, frame) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                    """,
                    .text(uaid),
                    .text(channelID),
                    .text(version),
                    .optional(message.collapseKey),
                    .integer(expires.milliseconds),
                    .text(GatewayFrame.notification(notification).text)
                )
                return Posted(result: .accepted(messageID: version), uaid: uaid)
            }
        }
    }

    package func pending(
        uaid: String,
        after: Int64,
        countMax: Int,
        now: Timestamp
    ) async throws -> [StoredMessage] {
        try await database.read { connection in
            try connection.rows(
                "SELECT sequence, frame FROM message WHERE uaid = ?1 AND sequence > ?2 AND expires > ?3 ORDER BY sequence LIMIT ?4",
                .text(uaid),
                .integer(after),
                .integer(now.milliseconds),
                .integer(countMax)
            ) { (row) throws(SQLiteError) in
                guard case .notification(let notification)? = try? GatewayFrame(parsing: row.text(1)) else {
                    throw SQLiteError(
                        code: 11,
                        message: "message \(row.integer(0)) has a frame that this program cannot read"
                    )
                }
                return StoredMessage(sequence: row.integer(0), notification: notification)
            }
        }
    }

    package func acknowledge(uaid: String, versions: [String]) async throws {
        try await database.write { connection in
            for version in versions {
                try connection.run(
                    "DELETE FROM message WHERE uaid = ?1 AND version = ?2",
                    .text(uaid),
                    .text(version)
                )
            }
        }
    }

    package func cancel(version: String) async throws -> Bool {
        try await database.write { connection in
            try connection.run("DELETE FROM message WHERE version = ?1", .text(version))
            return connection.changedRowCount > 0
        }
    }

    package func messageCount() async throws -> Int {
        try await database.read { connection in
            Int(
                try connection.row("SELECT count(*) FROM message") { (row) throws(SQLiteError) in
                    row.integer(0)
                } ?? 0
            )
        }
    }

    package func sweep(now: Timestamp) async throws -> Int {
        try await database.write { connection in
            try connection.run("DELETE FROM delivery WHERE forget <= ?1", .integer(now.milliseconds))
            try connection.run("DELETE FROM message WHERE expires <= ?1", .integer(now.milliseconds))
            return connection.changedRowCount
        }
    }
}

extension Connection {
    /// The handle is dead from now on, and in no topic.
    fileprivate func giveBack(_ uaid: String, _ channelID: String, _ now: Timestamp) throws(SQLiteError) {
        try run(
            """
            DELETE FROM topic WHERE handle IN (
                SELECT handle FROM channel WHERE uaid = ?1 AND channel_id = ?2 AND platform = ?3 AND removed IS NULL)
            """,
            .text(uaid),
            .text(channelID),
            .text(Platform.fcmV1.rawValue)
        )
        try run(
            "UPDATE channel SET removed = ?3 WHERE uaid = ?1 AND channel_id = ?2 AND removed IS NULL",
            .text(uaid),
            .text(channelID),
            .integer(now.milliseconds)
        )
    }

    func owner(_ handle: PlatformHandle) throws(SQLiteError) -> HandleOwner? {
        // Tokens compare without case (APNs); they are stored as `PlatformHandle` has them.
        try row(
            "SELECT uaid, channel_id, removed FROM channel WHERE platform = ?1 AND handle = ?2",
            .text(handle.platform.rawValue),
            .text(handle.text)
        ) {
            (row) throws(SQLiteError) in
            row.isNull(2)
                ? HandleOwner.live(uaid: row.text(0), channelID: row.text(1))
                : .removed(since: Timestamp(milliseconds: row.integer(2)))
        }
    }
}

extension Database.Schema {
    /// `message.sequence` is the delivery order and is never used twice.
    package static let mailbox = Database.Schema([
        """
        CREATE TABLE channel (
            platform TEXT NOT NULL, handle TEXT NOT NULL, uaid TEXT NOT NULL, channel_id TEXT NOT NULL,
            created INTEGER NOT NULL, removed INTEGER, PRIMARY KEY (platform, handle)) WITHOUT ROWID;
        CREATE INDEX channel_device ON channel (uaid, channel_id);
        CREATE TABLE message (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, uaid TEXT NOT NULL, channel_id TEXT NOT NULL, version TEXT NOT NULL,
            collapse_key TEXT, expires INTEGER NOT NULL, frame TEXT NOT NULL);
        CREATE INDEX message_device ON message (uaid, sequence);
        CREATE INDEX message_version ON message (version);
        CREATE INDEX message_expires ON message (expires);
        CREATE TABLE delivery (
            handle TEXT NOT NULL, id TEXT NOT NULL, body_hash BLOB NOT NULL, forget INTEGER NOT NULL,
            PRIMARY KEY (handle, id, body_hash)) WITHOUT ROWID;
        CREATE INDEX delivery_forget ON delivery (forget)
        """,
        """
        CREATE TABLE topic (topic TEXT NOT NULL, handle TEXT NOT NULL, PRIMARY KEY (topic, handle)) WITHOUT ROWID;
        CREATE INDEX topic_handle ON topic (handle)
        """,
        "CREATE TABLE broadcast (id TEXT PRIMARY KEY, version TEXT NOT NULL) WITHOUT ROWID",
    ])
}

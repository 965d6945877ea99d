package import SQLiteStorage
import TidingsModels

/// A registration that this back end made.
struct OwnedRegistration: Sendable, Equatable {
    var id: String
    var user: String
    var platform: Platform?
    var handle: String?
    var installationID: String?
}

/// An item that waits to be fetched.
struct StoredItem: Sendable, Equatable {
    enum Content: Sendable, Equatable {
        /// The secret text of a secure item.
        case secret(String)
        /// A rich item's file below the folder for uploads.
        case file(name: String, type: String)
        /// A rich item's URL or coupon.
        case text(String, type: String)
    }
    var notification: TidingsModels.Notification
    var owner: String
    var content: Content
}

/// What the app back end keeps. Every write is on disk when it returns.
package final class BackendStore: Sendable {
    package let database: Database
    /// Stored items per owner; the oldest make room.
    private static let itemCountMaxPerOwner = 1000

    package init(path: String) throws { database = try Database(path: path, schema: .backend) }

    package func close() { database.close() }

    // MARK: Registrations

    func own(_ registration: OwnedRegistration) async throws {
        try await database.write { connection in
            try connection.run(
                """
                INSERT INTO owner (id, user, platform, handle, installation) VALUES (?1, ?2, ?3, ?4, ?5)
                ON CONFLICT (id) DO UPDATE SET user = ?2, platform = ?3, handle = ?4, installation = ?5
                """,
                .text(registration.id),
                .text(registration.user),
                .optional(registration.platform?.rawValue),
                .optional(registration.handle),
                .optional(registration.installationID)
            )
        }
    }

    func disown(_ id: String) async throws {
        try await database.write { try $0.run("DELETE FROM owner WHERE id = ?1", .text(id)) }
    }

    func owned(id: String) async throws -> OwnedRegistration? {
        try await owned("WHERE id = ?1", id).first
    }

    func owned(installationID: String) async throws -> OwnedRegistration? {
        try await owned("WHERE installation = ?1", installationID).first
    }

    func owned(handle: String) async throws -> [OwnedRegistration] {
        try await owned("WHERE handle = ?1", handle)
    }

    private func owned(_ condition: String, _ argument: String) async throws -> [OwnedRegistration] {
        try await database.read { connection in
            try connection.rows(
                "SELECT id, user, platform, handle, installation FROM owner \(condition)",
                .text(argument)
            ) {
                (row) throws(SQLiteError) in
                OwnedRegistration(
                    id: row.text(0),
                    user: row.text(1),
                    platform: row.optionalText(2).flatMap(Platform.init(rawValue:)),
                    handle: row.optionalText(3),
                    installationID: row.optionalText(4)
                )
            }
        }
    }

    // MARK: Items

    /// Stores an item under a free id that `draw` proposes; returns the files of items that made room.
    func add(
        _ item: StoredItem,
        expires: Timestamp,
        draw: @escaping @Sendable () -> Int32
    ) async throws -> (id: Int32, dropped: [String]) {
        try await database.write { connection in
            var id = draw()
            while try connection.row(
                "SELECT 1 FROM item WHERE id = ?1",
                .integer(Int64(id)),
                read: { (row) throws(SQLiteError) in true }
            ) != nil {
                id = draw()
            }
            let (file, text, type): (String?, String?, String?) =
                switch item.content {
                case .secret(let secret): (nil, secret, nil)
                case .file(let name, let type): (name, nil, type)
                case .text(let text, let type): (nil, text, type)
                }
            try connection.run(
                """
                INSERT INTO item (id, owner, message, rich_type, file, text, type, is_read, expires)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)
                """,
                .integer(Int64(id)),
                .text(item.owner),
                .text(item.notification.message),
                .text(item.notification.richType),
                .optional(file),
                .optional(text),
                .optional(type),
                .integer(expires.milliseconds)
            )
            let surplus = try connection.rows(
                "SELECT id, file FROM item WHERE owner = ?1 ORDER BY sequence DESC LIMIT -1 OFFSET ?2",
                .text(item.owner),
                .integer(Self.itemCountMaxPerOwner)
            ) { (row) throws(SQLiteError) in (row.integer(0), row.optionalText(1)) }
            for (old, _) in surplus { try connection.run("DELETE FROM item WHERE id = ?1", .integer(old)) }
            return (id, surplus.compactMap(\.1))
        }
    }

    /// The owner's item as it was before this read, which marks it as read; nil for a foreign or unknown one.
    func read(_ id: Int32, owner: String, now: Timestamp, marksRead: Bool) async throws -> StoredItem? {
        let found = try await database.read { connection in
            try connection.row(
                "SELECT message, rich_type, file, text, type, is_read FROM item WHERE id = ?1 AND owner = ?2 AND expires > ?3",
                .integer(Int64(id)),
                .text(owner),
                .integer(now.milliseconds)
            ) { (row) throws(SQLiteError) in
                let content: StoredItem.Content =
                    if let file = row.optionalText(2) {
                        .file(name: file, type: row.text(4))
                    } else if let type = row.optionalText(4) {
                        .text(row.text(3), type: type)
                    } else {
                        .secret(row.text(3))
                    }
                let secret: String = if case .secret(let secret) = content { secret } else { "" }
                return StoredItem(
                    notification: TidingsModels.Notification(
                        id: id,
                        message: row.text(0),
                        richType: row.text(1),
                        payload: secret,
                        read: row.integer(5) == 1
                    ),
                    owner: owner,
                    content: content
                )
            }
        }
        if let found, marksRead, !found.notification.read {
            try await database.write {
                try $0.run("UPDATE item SET is_read = 1 WHERE id = ?1", .integer(Int64(id)))
            }
        }
        return found
    }

    /// True while an item needs the file.
    func refers(to file: String) async throws -> Bool {
        try await database.read { connection in
            try connection.row("SELECT 1 FROM item WHERE file = ?1", .text(file)) {
                (row) throws(SQLiteError) in true
            } ?? false
        }
    }

    /// Forgets expired items; returns their files.
    func removeExpired(now: Timestamp) async throws -> [String] {
        try await database.write { connection in
            let files = try connection.rows(
                "SELECT file FROM item WHERE expires <= ?1 AND file IS NOT NULL",
                .integer(now.milliseconds)
            ) {
                (row) throws(SQLiteError) in row.text(0)
            }
            try connection.run("DELETE FROM item WHERE expires <= ?1", .integer(now.milliseconds))
            return files
        }
    }

    // MARK: Users

    package func setUser(_ name: String, passwordHash: String) async throws {
        try await database.write { connection in
            try connection.run(
                "INSERT INTO user (name, password) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET password = ?2",
                .text(name.lowercased()),
                .text(passwordHash)
            )
        }
    }

    /// False when there was no such user.
    package func removeUser(_ name: String) async throws -> Bool {
        try await database.write { connection in
            try connection.run("DELETE FROM user WHERE name = ?1", .text(name.lowercased()))
            return connection.changedRowCount == 1
        }
    }

    package func userNames() async throws -> [String] {
        try await database.read {
            try $0.rows("SELECT name FROM user ORDER BY name") { (row) throws(SQLiteError) in row.text(0) }
        }
    }

    package func passwordHash(_ name: String) async throws -> String? {
        try await database.read { connection in
            try connection.row("SELECT password FROM user WHERE name = ?1", .text(name.lowercased())) {
                (row) throws(SQLiteError) in row.text(0)
            }
        }
    }
}

extension Database.Schema {
    static let backend = Database.Schema([
        """
        CREATE TABLE owner (
            id TEXT PRIMARY KEY, user TEXT NOT NULL, platform TEXT, handle TEXT, installation TEXT UNIQUE) WITHOUT ROWID;
        CREATE INDEX owner_handle ON owner (handle);
        CREATE TABLE item (
            sequence INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL UNIQUE, owner TEXT NOT NULL, message TEXT NOT NULL,
            rich_type TEXT NOT NULL, file TEXT, text TEXT, type TEXT, is_read INTEGER NOT NULL, expires INTEGER NOT NULL);
        CREATE INDEX item_owner ON item (owner, sequence);
        CREATE INDEX item_expires ON item (expires);
        CREATE TABLE user (name TEXT PRIMARY KEY, password TEXT NOT NULL) WITHOUT ROWID
        """
    ])
}

package import DeviceLink
import JSONBytes
import SQLiteStorage
package import TidingsModels

/// One push in the inbox.
package struct InboxEntry: Sendable, Equatable {
    package var id: Int64
    package var received: Timestamp
    package var notification: DeviceNotification
    package var isShown: Bool
    /// The text that was shown.
    package var text: String?
    /// A rich item's type, as the push named it.
    package var richType: String?
    /// The fetched content: a file in the state folder, or text.
    package var file: String?
    package var content: String?
    package var contentType: String?
    /// The stored item that could not be fetched for lack of credentials; set until it was.
    package var awaitsLogin: Bool
    /// Who was logged in when it came; nil for nobody.
    package var user: String?
}

/// The pushes that a device received, in SQLite. Every write is on disk when it returns.
final class Inbox: Sendable {
    private let database: Database

    init(path: String) throws { database = try Database(path: path, schema: .inbox, readerCount: 1) }

    func close() { database.close() }

    /// Stores a push; nil when it was stored before.
    func add(_ notification: DeviceNotification, user: String?, now: Timestamp) async throws -> InboxEntry? {
        try await database.write { connection in
            try connection.run(
                "INSERT OR IGNORE INTO entry (version, received, frame, user) VALUES (?1, ?2, ?3, ?4)",
                .text(notification.version),
                .integer(now.milliseconds),
                .text(GatewayFrame.notification(notification).text),
                .optional(user)
            )
            guard connection.changedRowCount == 1 else { return nil }
            return InboxEntry(
                id: connection.lastInsertedRow,
                received: now,
                notification: notification,
                isShown: false,
                awaitsLogin: false,
                user: user
            )
        }
    }

    /// Stores what is about to be shown, before it is shown.
    func markShown(_ entry: InboxEntry) async throws {
        try await database.write { connection in
            try connection.run(
                """
                UPDATE entry SET shown = 1, text = ?2, rich_type = ?3, file = ?4, content = ?5, content_type = ?6,
                    awaits_login = ?7 WHERE id = ?1
                """,
                .integer(entry.id),
                .optional(entry.text),
                .optional(entry.richType),
                .optional(entry.file),
                .optional(entry.content),
                .optional(entry.contentType),
                .integer(entry.awaitsLogin ? 1 : 0)
            )
        }
    }

    func entry(_ id: Int64) async throws -> InboxEntry? {
        try await entries("WHERE id = ?1", .integer(id)).first
    }
    func all() async throws -> [InboxEntry] { try await entries("ORDER BY id") }
    func unshown() async throws -> [InboxEntry] { try await entries("WHERE shown = 0 ORDER BY id") }
    func awaitingLogin() async throws -> [InboxEntry] {
        try await entries("WHERE awaits_login = 1 ORDER BY id")
    }

    private func entries(_ condition: String, _ argument: SQLiteValue? = nil) async throws -> [InboxEntry] {
        try await database.read { connection in
            let statement = try connection.statement(
                """
                SELECT id, received, frame, shown, text, rich_type, file, content, content_type, awaits_login, user
                FROM entry \(condition)
                """
            )
            defer { statement.reset() }
            try statement.bind(argument.map { [$0] } ?? [])
            var found: [InboxEntry] = []
            while try statement.step() {
                guard case .notification(let notification)? = try? GatewayFrame(parsing: statement.text(2))
                else {
                    throw SQLiteError(code: 11, message: "inbox entry \(statement.integer(0)) cannot be read")
                }
                found.append(
                    InboxEntry(
                        id: statement.integer(0),
                        received: Timestamp(milliseconds: statement.integer(1)),
                        notification: notification,
                        isShown: statement.integer(3) == 1,
                        text: statement.optionalText(4),
                        richType: statement.optionalText(5),
                        file: statement.optionalText(6),
                        content: statement.optionalText(7),
                        contentType: statement.optionalText(8),
                        awaitsLogin: statement.integer(9) == 1,
                        user: statement.optionalText(10)
                    )
                )
            }
            return found
        }
    }
}

extension Database.Schema {
    static let inbox = Database.Schema([
        """
        CREATE TABLE entry (
            id INTEGER PRIMARY KEY AUTOINCREMENT, version TEXT NOT NULL UNIQUE, received INTEGER NOT NULL, frame TEXT NOT NULL,
            shown INTEGER NOT NULL DEFAULT 0, text TEXT, rich_type TEXT, file TEXT, content TEXT, content_type TEXT,
            awaits_login INTEGER NOT NULL DEFAULT 0, user TEXT);
        CREATE INDEX entry_unshown ON entry (id) WHERE shown = 0;
        CREATE INDEX entry_awaiting ON entry (id) WHERE awaits_login = 1
        """
    ])
}

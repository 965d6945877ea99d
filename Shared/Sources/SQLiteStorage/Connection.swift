import CTidingsSQLite

/// One open connection; owns the `sqlite3 *` and its prepared statements. Stays on the thread that uses it.
package final class Connection {
    private let handle: OpaquePointer
    /// Statements by their text, prepared once. Their number is the number of statements in the code.
    private var statements: [String: Statement] = [:]

    package enum Access { case readWrite, readOnly }

    package init(path: String, access: Access) throws(SQLiteError) {
        var opened: OpaquePointer?
        let flags =
            SQLITE_OPEN_NOMUTEX
            | (access == .readWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY)
        let code = sqlite3_open_v2(path, &opened, flags, nil)
        guard code == SQLITE_OK, let opened else {
            // A failed open still hands back a handle to close: https://www.sqlite.org/c3ref/open.html
            sqlite3_close_v2(opened)
            throw SQLiteError(code: code, message: String(cString: sqlite3_errstr(code)) + " (\(path))")
        }
        handle = opened
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 5000)
    }

    deinit {
        statements.removeAll()
        sqlite3_close_v2(handle)
    }

    /// Runs statements that return nothing, such as a schema.
    package func execute(_ sql: String) throws(SQLiteError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw error(code, sql) }
    }

    /// A prepared statement, ready for new arguments.
    package func statement(_ sql: String) throws(SQLiteError) -> Statement {
        if let known = statements[sql] {
            known.reset()
            return known
        }
        var prepared: OpaquePointer?
        let code = sqlite3_prepare_v3(handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
        guard code == SQLITE_OK, let prepared else { throw error(code, sql) }
        let statement = Statement(prepared, sql: sql)
        statements[sql] = statement
        return statement
    }

    /// Runs one statement with its arguments.
    package func run(_ sql: String, _ arguments: SQLiteValue...) throws(SQLiteError) {
        let statement = try statement(sql)
        defer { statement.reset() }
        try statement.bind(arguments)
        while try statement.step() {}
    }

    /// Every row of a query.
    package func rows<Row>(
        _ sql: String,
        _ arguments: SQLiteValue...,
        read: (Statement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> [Row] {
        let statement = try statement(sql)
        // Also when `read` throws: an open statement would pin its snapshot.
        defer { statement.reset() }
        try statement.bind(arguments)
        var rows: [Row] = []
        while try statement.step() { rows.append(try read(statement)) }
        return rows
    }

    /// The first row of a query, if any.
    package func row<Row>(
        _ sql: String,
        _ arguments: SQLiteValue...,
        read: (Statement) throws(SQLiteError) -> Row
    ) throws(SQLiteError) -> Row? {
        let statement = try statement(sql)
        defer { statement.reset() }
        try statement.bind(arguments)
        return try statement.step() ? try read(statement) : nil
    }

    /// Rows changed by the last statement.
    package var changedRowCount: Int { Int(sqlite3_changes64(handle)) }
    package var lastInsertedRow: Int64 { sqlite3_last_insert_rowid(handle) }

    /// Moves the write-ahead log into the database. Only the writer may: a checkpoint from a second connection
    /// can corrupt the log in the SQLite that Debian 12 ships.
    func checkpoint() throws(SQLiteError) {
        let code = sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
        guard code == SQLITE_OK || code == SQLITE_BUSY else { throw error(code, "wal_checkpoint") }
    }

    private func error(_ code: Int32, _ sql: String) -> SQLiteError {
        SQLiteError(code: code, message: String(cString: sqlite3_errmsg(handle)), sql: sql)
    }
}

/// An argument of a statement.
package enum SQLiteValue: Sendable {
    case null
    case integer(Int64)
    case text(String)
    case blob([UInt8])

    package static func integer(_ value: Int) -> SQLiteValue { .integer(Int64(value)) }
    package static func optional(_ text: String?) -> SQLiteValue { text.map { .text($0) } ?? .null }
}

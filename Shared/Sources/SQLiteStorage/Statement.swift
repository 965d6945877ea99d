import CTidingsSQLite

/// A prepared statement; owns the `sqlite3_stmt *`. Belongs to the thread of its connection.
package final class Statement {
    private let handle: OpaquePointer
    private let sql: String

    init(_ handle: OpaquePointer, sql: String) {
        self.handle = handle
        self.sql = sql
    }

    deinit { sqlite3_finalize(handle) }

    /// Ends the current run and forgets the arguments.
    package func reset() {
        sqlite3_reset(handle)
        sqlite3_clear_bindings(handle)
    }

    package func bind(_ arguments: [SQLiteValue]) throws(SQLiteError) {
        for (index, argument) in arguments.enumerated() {
            let position = Int32(index + 1)
            let code: Int32
            switch argument {
            case .null: code = sqlite3_bind_null(handle, position)
            case .integer(let value): code = sqlite3_bind_int64(handle, position, value)
            case .text(let text):
                code = tidings_sqlite_bind_text(handle, position, text, Int32(clamping: text.utf8.count))
            case .blob(let bytes):
                code = bytes.withUnsafeBytes {
                    tidings_sqlite_bind_blob(handle, position, $0.baseAddress, Int32(clamping: bytes.count))
                }
            }
            guard code == SQLITE_OK else { throw error(code) }
        }
    }

    /// True when there is a row to read.
    package func step() throws(SQLiteError) -> Bool {
        let code = sqlite3_step(handle)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default:
            let failure = error(code)
            sqlite3_reset(handle)
            throw failure
        }
    }

    package func integer(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }
    package func isNull(_ column: Int) -> Bool { sqlite3_column_type(handle, Int32(column)) == SQLITE_NULL }

    package func text(_ column: Int) -> String {
        guard let bytes = sqlite3_column_text(handle, Int32(column)) else { return "" }
        let count = Int(sqlite3_column_bytes(handle, Int32(column)))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    package func optionalText(_ column: Int) -> String? { isNull(column) ? nil : text(column) }

    package func blob(_ column: Int) -> [UInt8] {
        guard let bytes = sqlite3_column_blob(handle, Int32(column)) else { return [] }
        return Array(
            UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(handle, Int32(column))))
        )
    }

    private func error(_ code: Int32) -> SQLiteError {
        let message = sqlite3_db_handle(handle).map { String(cString: sqlite3_errmsg($0)) } ?? ""
        return SQLiteError(code: code, message: message, sql: sql)
    }
}

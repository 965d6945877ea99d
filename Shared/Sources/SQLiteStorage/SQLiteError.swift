/// A failed SQLite call.
package struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The extended result code: https://www.sqlite.org/rescode.html
    package let code: Int32
    package let message: String
    /// The statement, without its arguments.
    package let sql: String?

    package init(code: Int32, message: String, sql: String? = nil) {
        self.code = code
        self.message = message
        self.sql = sql
    }

    package var description: String { "SQLite \(code): \(message)" + (sql.map { " in «\($0)»" } ?? "") }
}

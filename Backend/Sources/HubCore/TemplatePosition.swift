import JSONBytes
import TidingsModels

/// Where in a template's body a value stands, for errors.
enum TemplatePosition {
    /// `line 2, column 7`, counted from 1; columns in bytes.
    static func text(_ offset: Int, in bytes: [UInt8]) -> String {
        let before = bytes.prefix(offset)
        let line = before.reduce(1) { $0 + ($1 == 0x0A ? 1 : 0) }
        let column = before.reversed().prefix { $0 != 0x0A }.count + 1
        return "line \(line), column \(column)"
    }

    /// The error of a value, with its place in front.
    static func error(_ error: HubError, at offset: Int, in bytes: [UInt8]) -> HubError {
        HubError(error.code, "At \(text(offset, in: bytes)) of the template body: \(error.message)")
    }

    /// The offset of the first string value, no member name, that is this text. The bytes are JSON.
    static func offset(of text: String, inJSON bytes: [UInt8]) -> Int? {
        var position = 0
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "\"") else {
                position += 1
                continue
            }
            let start = position
            position += 1
            while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
                position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
            }
            position = min(position + 1, bytes.count)
            let isName = bytes[position...].first { $0 > 0x20 } == UInt8(ascii: ":")
            if !isName, (try? JSONValue(parsing: Array(bytes[start..<position])))?.stringValue == text {
                return start
            }
        }
        return nil
    }
}

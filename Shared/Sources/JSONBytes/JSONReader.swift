/// Why a text is not the JSON that was asked for, and where.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was seen and what is allowed.
    public let reason: String
    /// The byte offset, from 0.
    public let offset: Int
    /// The line, from 1.
    public let line: Int
    /// The byte column in the line, from 1.
    public let column: Int

    /// The reason and the position.
    public var description: String { "\(reason) at line \(line), column \(column)" }
}

/// What a reader accepts besides the grammar.
package struct JSONLimits: Sendable {
    /// Nested arrays and objects.
    package var depthMax = 64
    /// The whole text.
    package var byteCountMax = 16 << 20

    package init() {}
}

extension JSONValue {
    /// Reads exactly one JSON text (RFC 8259): UTF-8 without a byte order mark, unique member names, the
    /// strict number grammar, no trailing bytes.
    package init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
        var reader = JSONReader(bytes: bytes, limits: limits)
        self = try reader.readDocument()
    }
}

/// A cursor over one text. Recursion is bounded by ``JSONLimits/depthMax``.
private struct JSONReader {
    let bytes: [UInt8]
    let limits: JSONLimits
    var position = 0

    mutating func readDocument() throws(JSONError) -> JSONValue {
        guard bytes.count <= limits.byteCountMax else {
            throw error("The text has \(bytes.count) bytes, at most \(limits.byteCountMax) are allowed")
        }
        let value = try readValue(depth: 0)
        skipBlanks()
        guard position == bytes.count else { throw error("Nothing may follow the JSON value") }
        return value
    }

    func error(_ reason: String) -> JSONError {
        var line = 1
        var lineStart = 0
        for index in 0..<min(position, bytes.count) where bytes[index] == 0x0A {
            line += 1
            lineStart = index + 1
        }
        return JSONError(reason: reason, offset: position, line: line, column: position - lineStart + 1)
    }

    var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
            position += 1
        }
    }

    mutating func readValue(depth: Int) throws(JSONError) -> JSONValue {
        skipBlanks()
        switch current {
        case UInt8(ascii: "{"): return .object(try readObject(depth: depth))
        case UInt8(ascii: "["): return .array(try readArray(depth: depth))
        case UInt8(ascii: "\""): return .string(try readString())
        case UInt8(ascii: "t"): return try readWord("true", .bool(true))
        case UInt8(ascii: "f"): return try readWord("false", .bool(false))
        case UInt8(ascii: "n"): return try readWord("null", .null)
        case let byte?
        where byte == UInt8(ascii: "-") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte):
            return .number(try readNumber())
        case nil: throw error("The text ends where a JSON value is expected")
        default: throw error("Expected a JSON value")
        }
    }

    mutating func readWord(_ word: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let count = word.utf8CodeUnitCount
        guard position + count <= bytes.count else { throw error("Expected \(word)") }
        for index in 0..<count where bytes[position + index] != word.utf8Start[index] {
            throw error("Expected \(word)")
        }
        position += count
        return value
    }

    mutating func enter(_ depth: Int) throws(JSONError) {
        guard depth < limits.depthMax else { throw error("Nested deeper than \(limits.depthMax) levels") }
        position += 1
        skipBlanks()
    }

    mutating func readObject(depth: Int) throws(JSONError) -> JSONObject {
        try enter(depth)
        var object = JSONObject()
        var names = Set<String>()
        if current == UInt8(ascii: "}") {
            position += 1
            return object
        }
        while true {
            skipBlanks()
            guard current == UInt8(ascii: "\"") else { throw error("Expected a member name in quotes") }
            let start = position
            let name = try readString()
            guard names.insert(name).inserted else {
                position = start
                throw error("The member \"\(name)\" occurs twice")
            }
            skipBlanks()
            guard current == UInt8(ascii: ":") else { throw error("Expected ':' after a member name") }
            position += 1
            object.append(name, try readValue(depth: depth + 1))
            skipBlanks()
            switch current {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "}"):
                position += 1
                return object
            default: throw error("Expected ',' or '}' after a member")
            }
        }
    }

    mutating func readArray(depth: Int) throws(JSONError) -> [JSONValue] {
        try enter(depth)
        var values: [JSONValue] = []
        if current == UInt8(ascii: "]") {
            position += 1
            return values
        }
        while true {
            values.append(try readValue(depth: depth + 1))
            skipBlanks()
            switch current {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "]"):
                position += 1
                return values
            default: throw error("Expected ',' or ']' after an element")
            }
        }
    }

    mutating func readNumber() throws(JSONError) -> String {
        let start = position
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") {
            position += 1
        } else {
            try readDigits()
        }
        if current == UInt8(ascii: ".") {
            position += 1
            try readDigits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try readDigits()
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    mutating func readDigits() throws(JSONError) {
        let start = position
        while let byte = current, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
        guard position > start else { throw error("Expected a digit") }
    }

    mutating func readString() throws(JSONError) -> String {
        position += 1
        let start = position
        // Most strings hold no escape: find the end first, and copy once.
        while let byte = current, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\"), byte >= 0x20 {
            position += 1
        }
        if current == UInt8(ascii: "\"") {
            position += 1
            return try validated(bytes[start..<(position - 1)], from: start)
        }
        var text = Array(bytes[start..<position])
        while true {
            guard let byte = current else { throw error("The text ends inside a string") }
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return try validated(text[...], from: start)
            case UInt8(ascii: "\\"):
                position += 1
                try readEscape(into: &text)
            case 0..<0x20: throw error("A control character in a string must be written as \\u00XX")
            default:
                text.append(byte)
                position += 1
            }
        }
    }

    func validated(_ text: ArraySlice<UInt8>, from start: Int) throws(JSONError) -> String {
        guard let string = String(validating: text, as: UTF8.self) else {
            throw JSONReader(bytes: bytes, limits: limits, position: start).error("The string is not UTF-8")
        }
        return string
    }

    mutating func readEscape(into text: inout [UInt8]) throws(JSONError) {
        guard let byte = current else { throw error("The text ends inside a string") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var unit = try readFourHexDigits()
            if (0xD800..<0xDC00).contains(unit) {
                guard current == UInt8(ascii: "\\") else { throw error("Half a surrogate pair") }
                position += 1
                guard current == UInt8(ascii: "u") else { throw error("Half a surrogate pair") }
                position += 1
                let low = try readFourHexDigits()
                guard (0xDC00..<0xE000).contains(low) else { throw error("Half a surrogate pair") }
                unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(unit) else { throw error("Half a surrogate pair") }
            text.append(contentsOf: UTF8.encode(scalar).map { Array($0) } ?? [])
        default:
            position -= 1
            throw error("Unknown escape; allowed are \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX")
        }
    }

    mutating func readFourHexDigits() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = hexDigit(byte) else {
                throw error("Expected four hex digits after \\u")
            }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

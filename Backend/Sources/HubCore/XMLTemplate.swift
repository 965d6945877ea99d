import TidingsModels
import XMLBytes

/// Finds the expressions of an XML template: attribute values and the text of elements without child elements.
/// Everything else is kept byte for byte, but for the XML declaration, whose encoding may be wrong.
enum XMLTemplate {
    static func compile(_ bytes: [UInt8]) throws(HubError) -> [CompiledTemplate.Segment] {
        // expat proves that the document is well-formed, so the scanner below needs no error paths of its own.
        do throws(XMLError) { _ = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The template body is not XML: \(error).")
        }
        var scanner = XMLTemplateScanner(bytes)
        return try scanner.scan()
    }
}

private struct XMLTemplateScanner {
    private let bytes: [UInt8]
    private var position = 0
    /// What was copied to `segments` so far.
    private var copied = 0
    private var segments: [CompiledTemplate.Segment] = []

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func scan() throws(HubError) -> [CompiledTemplate.Segment] {
        /// Where the text behind the last start tag began; nil once something else came between.
        var leafStart: Int?
        while position < bytes.count {
            guard bytes[position] == UInt8(ascii: "<") else {
                position += 1
                continue
            }
            if starts("<!--") {
                leafStart = nil
                skip(past: "-->")
            } else if starts("<![CDATA[") {
                // Part of the text: a leaf may be one CDATA section.
                skip(past: "]]>")
            } else if starts("<?") {
                let start = position
                let isDeclaration =
                    starts("<?xml ") || starts("<?xml\t") || starts("<?xml\r") || starts("<?xml\n")
                leafStart = nil
                skip(past: "?>")
                if isDeclaration, segments.isEmpty {
                    flush(upTo: start)
                    copied = position
                }
            } else if starts("</") {
                if let start = leafStart { try replaceText(start, position) }
                leafStart = nil
                skip(past: ">")
            } else {
                let isEmpty = try scanStartTag()
                leafStart = isEmpty ? nil : position
            }
        }
        flush(upTo: bytes.count)
        return segments
    }

    private func starts(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

    private mutating func skip(past text: String) {
        while position < bytes.count, !starts(text) { position += 1 }
        position = min(bytes.count, position + text.utf8.count)
    }

    private mutating func flush(upTo end: Int) {
        if end > copied { segments.append(.bytes(Array(bytes[copied..<end]))) }
        copied = end
    }

    /// Scans a start tag with its attributes; true for an empty element.
    private mutating func scanStartTag() throws(HubError) -> Bool {
        while position < bytes.count {
            let byte = bytes[position]
            position += 1
            if byte == UInt8(ascii: ">") { return bytes[position - 2] == UInt8(ascii: "/") }
            guard byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") else { continue }
            let start = position
            while position < bytes.count, bytes[position] != byte { position += 1 }
            try replaceValue(start, position)
            position = min(bytes.count, position + 1)
        }
        return true
    }

    private mutating func replaceValue(_ start: Int, _ end: Int) throws(HubError) {
        try replace(start, end, text: XMLTemplateText.decoded(bytes[start..<end]))
    }

    private mutating func replaceText(_ start: Int, _ end: Int) throws(HubError) {
        try replace(start, end, text: XMLTemplateText.decoded(bytes[start..<end]))
    }

    private mutating func replace(_ start: Int, _ end: Int, text: String) throws(HubError) {
        let parsed: TemplateExpression?
        do throws(HubError) { parsed = try TemplateExpression(parsing: text) } catch {
            throw TemplatePosition.error(error, at: start, in: bytes)
        }
        guard let expression = parsed else { return }
        flush(upTo: start)
        segments.append(.xmlText(expression))
        copied = end
    }
}

private enum XMLTemplateText {
    /// Resolves CDATA sections, the five predefined entities and character references.
    static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
        var result: [UInt8] = []
        var position = bytes.startIndex
        while position < bytes.endIndex {
            let rest = bytes[position...]
            if rest.starts(with: "<![CDATA[".utf8) {
                position += 9
                while position < bytes.endIndex, !bytes[position...].starts(with: "]]>".utf8) {
                    result.append(bytes[position])
                    position += 1
                }
                position = min(bytes.endIndex, position + 3)
            } else if rest.first == UInt8(ascii: "&"), let end = rest.firstIndex(of: UInt8(ascii: ";")) {
                result += entity(String(decoding: rest[(position + 1)..<end], as: UTF8.self)).utf8
                position = end + 1
            } else {
                result.append(bytes[position])
                position += 1
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func entity(_ name: String) -> String {
        switch name {
        case "amp": return "&"
        case "lt": return "<"
        case "gt": return ">"
        case "quot": return "\""
        case "apos": return "'"
        default:
            let digits = name.dropFirst(name.hasPrefix("#x") ? 2 : 1)
            guard name.hasPrefix("#"), let value = UInt32(digits, radix: name.hasPrefix("#x") ? 16 : 10),
                let scalar = Unicode.Scalar(value)
            else { return "" }
            return String(Character(scalar))
        }
    }
}

package import HTTPMessages
package import TidingsModels

/// The parts of a `multipart/mixed` body (RFC 2046 section 5.1), as batch sends have them.
package struct MultipartMixed: Equatable, Sendable {
    package struct Part: Equatable, Sendable {
        package var fields: HTTPFields
        package var body: [UInt8]

        package init(fields: HTTPFields, body: [UInt8]) {
            self.fields = fields
            self.body = body
        }

        /// The `name` of `Content-Disposition`, quoted or not.
        package var name: String? {
            MultipartMixed.parameter("name", of: fields["Content-Disposition"] ?? "")
        }
    }

    package static let partCountMax = 16
    private static let fieldCountMax = 64
    package var parts: [Part]

    package init(parts: [Part]) { self.parts = parts }

    /// The boundary of a content type; nil for another type, and without one of 1 to 200 characters. Blanks around the `=` are taken:
    /// the JavaScript SDK writes them.
    package static func boundary(contentType: String) -> String? {
        let type = contentType.prefix { $0 != ";" }
        guard ASCII.equalIgnoringCase(ASCII.trimmed(type).utf8, "multipart/mixed".utf8),
            let boundary = parameter("boundary", of: contentType), (1...200).contains(boundary.utf8.count)
        else { return nil }
        return boundary
    }

    /// A parameter behind the first `;`.
    static func parameter(_ name: String, of value: String) -> String? {
        for piece in value.split(separator: ";").dropFirst() {
            let pair = piece.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, ASCII.equalIgnoringCase(ASCII.trimmed(pair[0]).utf8, name.utf8) else {
                continue
            }
            let text = ASCII.trimmed(pair[1])
            guard text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") else {
                return String(text)
            }
            return String(text.dropFirst().dropLast())
        }
        return nil
    }

    /// Lines may end with LF alone, and the last one without an end.
    /// - Throws: ``HubError`` `.badRequest` with what is missing.
    package init(parsing body: [UInt8], boundary: String) throws(HubError) {
        let delimiter = Array("--\(boundary)".utf8)
        parts = []
        var position = 0
        // Start of the content of the part that is open.
        var open: Int?
        var isClosed = false
        while position < body.count, !isClosed {
            let end = body[position...].firstIndex(of: 0x0A) ?? body.count
            let next = min(end + 1, body.count)
            var line = body[position..<end]
            if line.last == 0x0D { line.removeLast() }
            while let last = line.last, last == 0x20 || last == 0x09 { line.removeLast() }
            let isLast = line.elementsEqual(delimiter + [0x2D, 0x2D])
            if isLast || line.elementsEqual(delimiter) {
                if let start = open {
                    guard parts.count < Self.partCountMax else {
                        throw HubError(.badRequest, "The body has more than \(Self.partCountMax) parts.")
                    }
                    parts.append(try Self.part(Self.withoutLineEnd(body, start..<position)))
                }
                open = next
                isClosed = isLast
            }
            position = next
        }
        guard isClosed else {
            throw HubError(.badRequest, "The multipart body has no line '--\(boundary)--', which ends it.")
        }
    }

    /// The line end before a delimiter belongs to the delimiter.
    private static func withoutLineEnd(_ body: [UInt8], _ range: Range<Int>) -> ArraySlice<UInt8> {
        var slice = body[range]
        if slice.last == 0x0A { slice.removeLast() }
        if slice.last == 0x0D { slice.removeLast() }
        return slice
    }

    private static func part(_ bytes: ArraySlice<UInt8>) throws(HubError) -> Part {
        var fields = HTTPFields()
        var rest = bytes
        while !rest.isEmpty {
            let end = rest.firstIndex(of: 0x0A) ?? rest.endIndex
            var line = rest[rest.startIndex..<end]
            rest = rest[min(end + 1, rest.endIndex)...]
            if line.last == 0x0D { line.removeLast() }
            if line.isEmpty { return Part(fields: fields, body: Array(rest)) }
            // A name is visible ASCII without a colon (RFC 5322 section 2.2).
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), fields.lines.count < fieldCountMax,
                case let name = ASCII.trimmed(
                    String(decoding: line[line.startIndex..<colon], as: UTF8.self)[...]
                ),
                !name.isEmpty, name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else {
                throw HubError(
                    .badRequest,
                    "A part of the multipart body has a line before its blank line that is no header field."
                )
            }
            let value = ASCII.trimmed(String(decoding: line[(colon + 1)...], as: UTF8.self)[...])
            fields.append(name, value)
        }
        return Part(fields: fields, body: [])
    }

    /// The body for a boundary that none of the parts holds.
    package func bytes(boundary: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for part in parts {
            bytes += "--\(boundary)\r\n".utf8
            for field in part.fields.lines { bytes += "\(field.name): \(field.value)\r\n".utf8 }
            bytes += [0x0D, 0x0A] + part.body + [0x0D, 0x0A]
        }
        return bytes + "--\(boundary)--\r\n".utf8
    }
}

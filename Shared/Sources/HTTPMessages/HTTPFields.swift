/// Header fields in the order they were received. Names compare without case (RFC 9110 section 5.1).
public struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One field line.
    public struct Field: Sendable, Equatable {
        /// The name as it was written.
        public var name: String
        /// The value without surrounding blanks.
        public var value: String
    }

    /// The field lines.
    public private(set) var lines: [Field] = []

    /// No fields.
    public init() {}

    /// The fields in the order of the literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { append(name, value) }
    }

    /// The first value of a field; setting replaces every line of that name.
    public subscript(name: String) -> String? {
        get { lines.first { Self.equal($0.name, name) }?.value }
        set {
            lines.removeAll { Self.equal($0.name, name) }
            if let newValue { append(name, newValue) }
        }
    }

    /// Adds a line behind those that are there.
    public mutating func append(_ name: String, _ value: String) {
        lines.append(Field(name: name, value: value))
    }

    /// Every value of a field, in order.
    public func all(_ name: String) -> [String] { lines.filter { Self.equal($0.name, name) }.map(\.value) }

    /// True when one of the comma-separated members of the field equals `token` without case.
    package func has(_ token: String, in name: String) -> Bool {
        all(name).contains { value in
            value.utf8.split(separator: UInt8(ascii: ",")).contains {
                ASCII.equalIgnoringCase(trimmed($0), token.utf8)
            }
        }
    }

    private static func equal(_ left: some StringProtocol, _ right: String) -> Bool {
        ASCII.equalIgnoringCase(left.utf8, right.utf8)
    }

    private func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        var text = text
        while let first = text.first, isBlank(first) { text.removeFirst() }
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }
}

package enum ASCII {
    package static func lower(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    package static func equalIgnoringCase(
        _ left: some Collection<UInt8>,
        _ right: some Collection<UInt8>
    ) -> Bool {
        left.count == right.count && zip(left, right).allSatisfy { lower($0) == lower($1) }
    }

    /// `text` without blanks, tabs and line ends on both sides.
    package static func trimmed(_ text: some StringProtocol) -> String {
        let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        let utf8 = Array(text.utf8)
        guard let start = utf8.firstIndex(where: { !isBlank($0) }) else { return "" }
        let end = utf8.lastIndex(where: { !isBlank($0) }) ?? start
        return String(decoding: utf8[start...end], as: UTF8.self)
    }

    /// The parts between bytes. A string of characters does not find a delimiter that a combining mark follows: the two are one
    /// character.
    package static func split(
        _ text: some StringProtocol,
        at delimiter: UInt8,
        maxSplits: Int = .max,
        omitsEmpty: Bool = false
    ) -> [String] {
        Array(text.utf8).split(
            separator: delimiter,
            maxSplits: maxSplits,
            omittingEmptySubsequences: omitsEmpty
        ).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Replaces ASCII by other text, byte by byte; see ``split(_:at:maxSplits:omitsEmpty:)``.
    package static func replacing(_ text: String, _ old: String, with new: String) -> String {
        var bytes: [UInt8] = []
        let (text, old) = (Array(text.utf8), Array(old.utf8))
        var index = 0
        while index < text.count {
            if text[index...].starts(with: old) {
                bytes += new.utf8
                index += old.count
            } else {
                bytes.append(text[index])
                index += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

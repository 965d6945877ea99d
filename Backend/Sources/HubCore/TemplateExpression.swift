import HTTPMessages
import TidingsModels

/// A value of a template that is computed for each notification (protocol reference, section 7).
///
/// A whole value that begins with `$ . % # {` is an expression; anything else is literal text.
struct TemplateExpression: Equatable, Sendable {
    enum Part: Equatable, Sendable {
        case literal(String)
        case property(Property)
    }

    struct Property: Equatable, Sendable {
        enum Kind: Equatable, Sendable { case plain, ellipsis, uriEncoded, number }
        var kind: Kind
        /// In lower case: look-up ignores case.
        var name: String
        var defaultValue: String?
        /// User-visible characters.
        var countMax: Int?
    }

    let parts: [Part]

    /// True when the value may become a JSON number.
    var isNumber: Bool {
        if parts.count == 1, case .property(let property) = parts[0] {
            property.kind == .number
        } else {
            false
        }
    }

    /// The properties that are read, in lower case.
    var propertyNames: [String] {
        parts.compactMap { if case .property(let property) = $0 { property.name } else { nil } }
    }

    /// Nil when `text` is a literal.
    init?(parsing text: String) throws(HubError) {
        guard let first = text.unicodeScalars.first, "$.%#{".unicodeScalars.contains(first) else {
            return nil
        }
        var parser = ExpressionParser(text)
        parts = try parser.parse()
    }

    /// The value for the given properties, whose names are in lower case. A missing property is empty.
    func value(_ properties: [String: String]) -> String {
        var result = ""
        for part in parts {
            switch part {
            case .literal(let text): result += text
            case .property(let property): result += property.value(properties)
            }
        }
        return result
    }
}

extension TemplateExpression.Property {
    fileprivate func value(_ properties: [String: String]) -> String {
        let value = properties[name] ?? defaultValue ?? ""
        switch kind {
        case .plain, .number:
            guard let countMax else { return value }
            return String(value.prefix(countMax))
        case .ellipsis:
            let countMax = countMax ?? 0
            if value.count <= countMax { return value }
            return String((value.prefix(max(countMax - 3, 0)) + "...").prefix(countMax))
        case .uriEncoded: return uriEncoded(value)
        }
    }
}

/// Percent-encodes all but unreserved characters (RFC 3986 section 2.3).
private func uriEncoded(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var bytes: [UInt8] = []
    for byte in text.utf8 {
        let isUnreserved =
            HubTag.isLegal(byte) && ![UInt8(ascii: "@"), UInt8(ascii: "#"), UInt8(ascii: ":")].contains(byte)
        if isUnreserved || byte == UInt8(ascii: "~") {
            bytes.append(byte)
        } else {
            bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
    }
    return String(decoding: bytes, as: UTF8.self)
}

/// Reads one expression. Works on scalars, not on characters, in which a delimiter and a combining mark behind it are one.
private struct ExpressionParser {
    let whole: String
    let text: [Unicode.Scalar]
    var position = 0
    var end: Int

    init(_ whole: String) {
        self.whole = whole
        text = Array(whole.unicodeScalars)
        end = text.count
    }

    mutating func parse() throws(HubError) -> [TemplateExpression.Part] {
        var isComposite = false
        if text.first == "{" {
            guard text.count >= 2, text.last == "}" else {
                throw error("a composite expression must end with '}'")
            }
            isComposite = true
            position = 1
            end -= 1
        }
        var parts: [TemplateExpression.Part] = []
        while true {
            skipBlanks()
            guard position < end else {
                throw error(parts.isEmpty ? "the expression is empty" : "a token must follow '+'")
            }
            parts.append(try parseToken())
            skipBlanks()
            if position == end { break }
            guard text[position] == "+" else {
                throw error("expected '+' or the end at character \(position + 1)")
            }
            position += 1
        }
        let hasNumber = parts.contains {
            if case .property(let property) = $0 { property.kind == .number } else { false }
        }
        if hasNumber, parts.count > 1 { throw error("'#' is not allowed together with other tokens") }
        // `{#(p)}` is text, like every composite.
        if hasNumber, isComposite, case .property(var property) = parts[0] {
            property.kind = .plain
            parts = [.property(property)]
        }
        return parts
    }

    func error(_ reason: String) -> HubError {
        HubError(
            .badRequest,
            "The template expression \(whole) is not valid: \(reason). A text that begins with one of $ . % # { is an expression; to have it "
                + "as it is, write {'\(ASCII.replacing(whole, "'", with: "''"))'}."
        )
    }

    mutating func skipBlanks() {
        while position < end, text[position] == " " || text[position] == "\t" { position += 1 }
    }

    mutating func parseToken() throws(HubError) -> TemplateExpression.Part {
        switch text[position] {
        case "$": return .property(try parseProperty(.plain))
        case ".": return .property(try parseProperty(.ellipsis))
        case "%": return .property(try parseProperty(.uriEncoded))
        case "#": return .property(try parseProperty(.number))
        case "'", "\"": return .literal(try parseLiteral(text[position]))
        default:
            throw error(
                "a token begins with $ . % # or a quote, found '\(text[position])' at character \(position + 1)"
            )
        }
    }

    /// The delimiter is doubled to stand for itself.
    mutating func parseLiteral(_ quote: Unicode.Scalar) throws(HubError) -> String {
        position += 1
        var literal = String.UnicodeScalarView()
        while position < end {
            if text[position] == quote {
                if position + 1 < end, text[position + 1] == quote {
                    literal.append(quote)
                    position += 2
                    continue
                }
                position += 1
                return String(literal)
            }
            literal.append(text[position])
            position += 1
        }
        throw error("a quoted text has no end")
    }

    mutating func parseProperty(
        _ kind: TemplateExpression.Property.Kind
    ) throws(HubError) -> TemplateExpression.Property {
        let sigil = text[position]
        position += 1
        if sigil == "$", text[position..<end].starts(with: "body".unicodeScalars) {
            throw error("$body is reserved")
        }
        guard position < end, text[position] == "(" else { throw error("'(' must follow '\(sigil)'") }
        position += 1
        var scalars = String.UnicodeScalarView()
        while position < end, text[position] != ",", text[position] != ")", !startsDefault {
            scalars.append(text[position])
            position += 1
        }
        let name = ASCII.trimmed(String(scalars))
        guard !name.isEmpty, name.utf8.allSatisfy({ isNameByte($0) }) else {
            throw error("the property name '\(name)' must consist of ASCII letters, digits and '_'")
        }
        guard name.utf8.count <= 120 else {
            throw error("the property name '\(name)' is longer than 120 characters")
        }
        var property = TemplateExpression.Property(kind: kind, name: name.lowercased())
        if startsDefault {
            position += 2
            property.defaultValue = try parseDefault()
        }
        skipBlanks()
        if position < end, text[position] == "," {
            guard kind == .plain || kind == .ellipsis else { throw error("'\(sigil)' takes no length") }
            position += 1
            property.countMax = try parseCount()
        } else if kind == .ellipsis {
            throw error("'.' needs a length: .(\(name), n)")
        }
        guard position < end, text[position] == ")" else { throw error("')' is missing") }
        position += 1
        return property
    }

    var startsDefault: Bool { position + 1 < end && text[position] == ":" && text[position + 1] == "{" }

    /// Up to the first `}` that no `\` precedes.
    mutating func parseDefault() throws(HubError) -> String {
        var value = String.UnicodeScalarView()
        while position < end {
            if text[position] == "\\", position + 1 < end {
                value.append(text[position + 1])
                position += 2
                continue
            }
            if text[position] == "}" {
                position += 1
                return String(value)
            }
            value.append(text[position])
            position += 1
        }
        throw error("a default value has no '}'")
    }

    mutating func parseCount() throws(HubError) -> Int {
        var digits = String.UnicodeScalarView()
        while position < end, text[position] != ")" {
            if text[position] != " " { digits.append(text[position]) }
            position += 1
        }
        guard let count = Int(String(digits)), count >= 0 else {
            throw error("the length '\(String(digits))' is not a number from 0")
        }
        return count
    }

    func isNameByte(_ byte: UInt8) -> Bool {
        HubTag.isLegal(byte) && !"@#.:-".utf8.contains(byte)
    }
}

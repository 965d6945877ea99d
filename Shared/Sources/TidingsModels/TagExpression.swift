/// Which registrations a send addresses: tags joined by `||`, `&&`, `!` and parentheses.
///
/// `!` binds tighter than `&&`, and that tighter than `||`. A single tag is an expression.
public indirect enum TagExpression: Equatable, Sendable {
    /// Registrations that carry the tag.
    case tag(HubTag)
    /// Registrations that do not match.
    case not(TagExpression)
    /// Registrations that match all of two or more operands.
    case and([TagExpression])
    /// Registrations that match one of two or more operands.
    case or([TagExpression])

    /// Parses an expression.
    /// - Throws: ``HubError`` `.badRequest` that names the position and what is expected there.
    public init(parsing text: String, limits: TagExpressionLimits = TagExpressionLimits()) throws(HubError) {
        var parser = TagExpressionParser(text, limits: limits)
        self = try parser.parse()
    }

    /// True when a registration with these tags matches.
    package func matches(_ tags: Set<HubTag>) -> Bool {
        switch self {
        case .tag(let tag): tags.contains(tag)
        case .not(let operand): !operand.matches(tags)
        case .and(let operands): operands.allSatisfy { $0.matches(tags) }
        case .or(let operands): operands.contains { $0.matches(tags) }
        }
    }

    /// The tags, in order, with repeats.
    package var tags: [HubTag] {
        switch self {
        case .tag(let tag): [tag]
        case .not(let operand): operand.tags
        case .and(let operands), .or(let operands): operands.flatMap(\.tags)
        }
    }

    /// True when `||` is the only operator.
    package var isOnlyOr: Bool {
        switch self {
        case .tag: true
        case .or(let operands): operands.allSatisfy(\.isOnlyOr)
        case .not, .and: false
        }
    }
}

/// The bounds of an expression. The original allows 20 tags joined by `||` alone and 6 otherwise; here both are
/// configuration, and the defaults only bound the work of one send.
public struct TagExpressionLimits: Sendable {
    /// Most tags when `||` is the only operator.
    public var tagCountMaxOnlyOr = 1000
    /// Most tags otherwise.
    public var tagCountMax = 1000
    /// Deepest nesting of `!` and parentheses.
    public var depthMax = 64
    /// Longest text in bytes.
    public var byteCountMax = 8000

    /// The defaults.
    public init() {}
}

private struct TagExpressionParser {
    let text: [UInt8]
    let limits: TagExpressionLimits
    var position = 0

    init(_ text: String, limits: TagExpressionLimits) {
        self.text = Array(text.utf8)
        self.limits = limits
    }

    mutating func parse() throws(HubError) -> TagExpression {
        guard text.count <= limits.byteCountMax else {
            throw HubError(
                .badRequest,
                "The tag expression has \(text.count) bytes, at most \(limits.byteCountMax) are allowed."
            )
        }
        let expression = try parseOr(depth: 0)
        skipBlanks()
        guard position == text.count else { throw error("Expected '&&', '||' or the end") }
        let count = expression.tags.count
        let countMax = expression.isOnlyOr ? limits.tagCountMaxOnlyOr : limits.tagCountMax
        guard count <= countMax else {
            throw HubError(
                .badRequest,
                "The tag expression has \(count) tags, at most \(countMax) are allowed."
            )
        }
        return expression
    }

    func error(_ reason: String) -> HubError {
        let seen =
            position < text.count
            ? "'\(String(decoding: text[position...].prefix(20), as: UTF8.self))'" : "the end"
        return HubError(
            .badRequest,
            "\(reason) at character \(position + 1) of the tag expression, found \(seen)."
        )
    }

    mutating func skipBlanks() {
        while position < text.count, text[position] == 0x20 || text[position] == 0x09 { position += 1 }
    }

    mutating func skip(_ symbol: String) -> Bool {
        skipBlanks()
        guard text[position...].starts(with: symbol.utf8) else { return false }
        position += symbol.utf8.count
        return true
    }

    mutating func parseOr(depth: Int) throws(HubError) -> TagExpression {
        var operands = [try parseAnd(depth: depth)]
        while skip("||") { operands.append(try parseAnd(depth: depth)) }
        return operands.count == 1 ? operands[0] : .or(operands)
    }

    mutating func parseAnd(depth: Int) throws(HubError) -> TagExpression {
        var operands = [try parseUnary(depth: depth)]
        while skip("&&") { operands.append(try parseUnary(depth: depth)) }
        return operands.count == 1 ? operands[0] : .and(operands)
    }

    mutating func parseUnary(depth: Int) throws(HubError) -> TagExpression {
        guard depth < limits.depthMax else { throw error("Nested deeper than \(limits.depthMax) levels") }
        if skip("!") { return .not(try parseUnary(depth: depth + 1)) }
        if skip("(") {
            let inner = try parseOr(depth: depth + 1)
            guard skip(")") else { throw error("Expected ')'") }
            return inner
        }
        return .tag(try parseTag())
    }

    mutating func parseTag() throws(HubError) -> HubTag {
        skipBlanks()
        let start = position
        if position < text.count, text[position] == UInt8(ascii: "$") {
            while position < text.count, text[position] != UInt8(ascii: "}") { position += 1 }
            if position < text.count { position += 1 }
            guard let tag = HubTag(system: String(decoding: text[start..<position], as: UTF8.self)) else {
                position = start
                throw error("Expected $InstallationId:{…} or $UserId:{…}")
            }
            return tag
        }
        while position < text.count, HubTag.isLegal(text[position]) { position += 1 }
        guard position > start else { throw error("Expected a tag, '!' or '('") }
        return try HubTag(String(decoding: text[start..<position], as: UTF8.self))
    }
}

import HTTPMessages

/// Which topics a message goes to: a boolean expression over `'name' in topics` (Firebase: "Send messages to topics").
indirect enum FCMCondition: Sendable, Equatable {
    case topic(String)
    case not(FCMCondition)
    case and(FCMCondition, FCMCondition)
    case or(FCMCondition, FCMCondition)

    static let topicCountMax = 5
    private static let byteCountMax = 1000
    private static let depthMax = 32

    /// A topic's name without `/topics/`; nil when it is not one of letters, digits and `-_.~%`.
    static func topicName(_ text: String) -> String? {
        let name = text.hasPrefix("/topics/") ? String(text.dropFirst("/topics/".count)) : text
        let isName = { (byte: UInt8) in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "-_.~%".utf8.contains(byte)
            }
        }
        return (1...900).contains(name.utf8.count) && name.utf8.allSatisfy(isName) ? name : nil
    }

    /// Nil for what is not a condition, or has more than ``topicCountMax`` topics.
    init?(_ text: String) {
        guard text.utf8.count <= Self.byteCountMax else { return nil }
        var parser = Parser(Array(text.utf8))
        guard let parsed = parser.alternatives(0), parser.isAtEnd,
            parsed.topics.count <= Self.topicCountMax
        else { return nil }
        self = parsed
    }

    var topics: Set<String> {
        switch self {
        case .topic(let name): [name]
        case .not(let inner): inner.topics
        case .and(let left, let right), .or(let left, let right): left.topics.union(right.topics)
        }
    }

    func matches(_ has: (String) -> Bool) -> Bool {
        switch self {
        case .topic(let name): has(name)
        case .not(let inner): !inner.matches(has)
        case .and(let left, let right): left.matches(has) && right.matches(has)
        case .or(let left, let right): left.matches(has) || right.matches(has)
        }
    }

    /// Recursive descent, `&&` before `||`.
    private struct Parser {
        private let bytes: [UInt8]
        private var place = 0

        init(_ bytes: [UInt8]) { self.bytes = bytes }

        var isAtEnd: Bool {
            mutating get {
                skipBlanks()
                return place == bytes.count
            }
        }

        private mutating func skipBlanks() {
            while place < bytes.count, bytes[place] == 0x20 || bytes[place] == 0x09 { place += 1 }
        }

        private mutating func take(_ token: String) -> Bool {
            skipBlanks()
            guard bytes[place...].starts(with: token.utf8) else { return false }
            place += token.utf8.count
            return true
        }

        mutating func alternatives(_ depth: Int) -> FCMCondition? {
            guard depth < depthMax, var left = all(depth) else { return nil }
            while take("||") {
                guard let right = all(depth) else { return nil }
                left = .or(left, right)
            }
            return left
        }

        private mutating func all(_ depth: Int) -> FCMCondition? {
            guard var left = one(depth) else { return nil }
            while take("&&") {
                guard let right = one(depth) else { return nil }
                left = .and(left, right)
            }
            return left
        }

        private mutating func one(_ depth: Int) -> FCMCondition? {
            if take("!") { return depth < depthMax ? one(depth + 1).map { .not($0) } : nil }
            if take("(") {
                guard let inner = alternatives(depth + 1), take(")") else { return nil }
                return inner
            }
            guard take("'"), let end = bytes[place...].firstIndex(of: UInt8(ascii: "'")) else { return nil }
            let name = FCMCondition.topicName(String(decoding: bytes[place..<end], as: UTF8.self))
            place = end + 1
            guard let name, take("in"), take("topics") else { return nil }
            return .topic(name)
        }
    }
}

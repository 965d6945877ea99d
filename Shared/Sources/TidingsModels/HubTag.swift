/// A tag of a registration: up to 120 ASCII letters, digits and `_ @ # . : -`.
///
/// Tags compare without case and keep their spelling. The system tags `$InstallationId:{…}` and
/// `$UserId:{…}` are tags too, but only the hub sets them.
public struct HubTag: Hashable, Sendable, CustomStringConvertible {
    /// The tag as it was written.
    public let text: String
    /// The lower-case form that comparisons use.
    package let key: String

    /// The longest tag in bytes.
    public static let byteCountMax = 120

    /// A tag that a user may set.
    /// - Throws: ``HubError`` `.badRequest` that names the tag and the legal characters.
    public init(_ text: String) throws(HubError) {
        guard !text.utf8.isEmpty else { throw HubError(.badRequest, "A tag must not be empty.") }
        guard text.utf8.first != UInt8(ascii: "$") else {
            throw HubError(.badRequest, "The tag '\(text)' is not allowed: tags can not start with '$'.")
        }
        guard text.utf8.allSatisfy(Self.isLegal) else {
            throw HubError(
                .badRequest,
                "Invalid tag '\(text)'. Valid characters are ASCII letters and digits and '_', '@', '#', '.', ':', '-'."
            )
        }
        guard text.utf8.count <= Self.byteCountMax else {
            throw HubError(
                .badRequest,
                "The tag '\(text)' has \(text.utf8.count) characters, at most \(Self.byteCountMax) are allowed."
            )
        }
        self.init(unchecked: text)
    }

    /// A tag that was checked before, for example when it was stored.
    package init(unchecked text: String) {
        self.text = text
        key = text.lowercased()
    }

    /// A system tag such as `$UserId:{alice}`; nil for anything else.
    package init?(system text: String) {
        guard
            let name = ["$installationid:{", "$userid:{"].first(where: { text.lowercased().hasPrefix($0) }),
            text.hasSuffix("}")
        else { return nil }
        let inner = text.utf8.dropFirst(name.utf8.count).dropLast()
        guard !inner.isEmpty, inner.allSatisfy({ Self.isLegal($0) || $0 == UInt8(ascii: "=") }) else {
            return nil
        }
        self.init(unchecked: text)
    }

    /// True for the characters of a user's tag.
    package static func isLegal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "@"), UInt8(ascii: "#"),
            UInt8(ascii: "."), UInt8(ascii: ":"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    /// The tag as it was written.
    public var description: String { text }
    /// Compares without case.
    public static func == (left: HubTag, right: HubTag) -> Bool { left.key == right.key }
    /// Agrees with `==`.
    public func hash(into hasher: inout Hasher) { hasher.combine(key) }
}

extension HubTag {
    /// `username:<name>`, the tag that the app back end sets for the authenticated user.
    public static func username(_ name: String) throws(HubError) -> HubTag { try HubTag("username:" + name) }

    /// The tag of a news category: its name.
    public static func category(_ category: NewsCategory) -> HubTag { HubTag(unchecked: category.rawValue) }

    /// Reads the comma-separated form of the wire: blanks around a tag are dropped, repeats collapse.
    package static func list(_ text: String) throws(HubError) -> [HubTag] {
        var tags: [HubTag] = []
        var seen = Set<HubTag>()
        for part in text.split(separator: ",", omittingEmptySubsequences: true) {
            let trimmed = part.drop { $0.isWhitespace }
            guard !trimmed.isEmpty else { continue }
            var end = trimmed.endIndex
            while end > trimmed.startIndex, trimmed[trimmed.index(before: end)].isWhitespace {
                end = trimmed.index(before: end)
            }
            let tag = try HubTag(String(trimmed[..<end]))
            if seen.insert(tag).inserted { tags.append(tag) }
        }
        return tags
    }

    /// The most bytes that the comma-separated form of one registration's tags may have.
    package static let listByteCountMax = 8000
}

/// The six categories of the breaking-news tutorial.
public enum NewsCategory: String, CaseIterable, Sendable {
    /// One category; the raw value is the tag.
    case world = "World", politics = "Politics", business = "Business", technology = "Technology"
    /// One category; the raw value is the tag.
    case science = "Science", sports = "Sports"

    /// Finds a category without regard to case.
    public init?(name: String) {
        guard let found = Self.allCases.first(where: { $0.rawValue.lowercased() == name.lowercased() }) else {
            return nil
        }
        self = found
    }
}

/// One JSON value (RFC 8259) as it was read.
///
/// Numbers keep their text, so that a value passes through unchanged and nobody loses digits to a `Double`.
/// Objects keep the order of their members.
public indirect enum JSONValue: Equatable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number as its text, which satisfies the grammar of RFC 8259 section 6.
    case number(String)
    /// A string, unescaped.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object, in the order of the text.
    case object(JSONObject)
}

/// The members of a JSON object, in order. Names are unique: the reader refuses a repeated one.
public struct JSONObject: Equatable, Sendable {
    /// The name and value pairs.
    package private(set) var members: [(name: String, value: JSONValue)] = []

    /// An empty object.
    public init() {}

    package init(_ members: KeyValuePairs<String, JSONValue>) {
        for (name, value) in members { self[name] = value }
    }

    /// The value of a member; setting `nil` removes it, setting a new name appends it.
    public subscript(name: String) -> JSONValue? {
        get { members.first { $0.name == name }?.value }
        set {
            let index = members.firstIndex { $0.name == name }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append((name, value))
            case (nil, nil): break
            }
        }
    }

    /// Appends a member whose name is known to be new.
    mutating func append(_ name: String, _ value: JSONValue) { members.append((name, value)) }

    /// Looks a member up without regard to ASCII case, as the tutorials' clients require
    /// (`Platform`, `platform`).
    package func member(ignoringCase name: String) -> JSONValue? {
        let wanted = name.lowercased()
        return members.first { $0.name.lowercased() == wanted }?.value
    }

    package var isEmpty: Bool { members.isEmpty }

    /// Two objects are equal when they hold the same members, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.count == right.members.count && left.members.allSatisfy { right[$0.name] == $0.value }
    }
}

extension JSONValue {
    package static func object(_ members: KeyValuePairs<String, JSONValue>) -> JSONValue {
        .object(JSONObject(members))
    }

    package static func number(_ value: some BinaryInteger) -> JSONValue { .number(String(value)) }

    package var stringValue: String? {
        if case .string(let text) = self { text } else { nil }
    }

    package var boolValue: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The value as an integer; nil when it is not a number or has a fraction or exponent.
    package var integerValue: Int? {
        if case .number(let text) = self { Int(text) } else { nil }
    }

    package var arrayValue: [JSONValue]? {
        if case .array(let values) = self { values } else { nil }
    }

    package var objectValue: JSONObject? {
        if case .object(let object) = self { object } else { nil }
    }

    package subscript(name: String) -> JSONValue? { objectValue?[name] }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    /// A string.
    public init(stringLiteral value: String) { self = .string(value) }
    /// A number.
    public init(integerLiteral value: Int) { self = .number(String(value)) }
    /// A truth value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
}

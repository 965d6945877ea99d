import HTTPMessages
import JSONBytes
import OutboundHTTP
import TidingsModels
import XMLBytes

/// What an answer looks like without its values: status, type, the headers that clients read, and the form of the body.
struct Structure: Equatable {
    var parts: [(name: String, text: String)]

    static func == (left: Structure, right: Structure) -> Bool { left.difference(from: right) == nil }

    init(_ call: RecordedCall) {
        self.init(status: call.status, fields: call.fields, body: call.body ?? "")
    }

    init(_ answer: HTTPAnswer) {
        self.init(status: answer.status.code, fields: answer.fields, body: answer.text)
    }

    private init(status: Int, fields: HTTPFields, body: String) {
        parts = [("status", String(status)), ("body", Self.form(body))]
        // A type without a body says nothing.
        let type = (fields["Content-Type"] ?? "").lowercased().filter { $0 != " " }
        parts.append(("Content-Type", body.isEmpty ? "" : type))
        for name in ["Location", "Content-Location"] { parts.append((name, Self.address(fields[name]))) }
        for name in ["ETag", "X-MS-ContinuationToken"] {
            parts.append((name, fields[name] == nil ? "absent" : "present"))
        }
    }

    /// What differs, in words; nil when nothing does.
    func difference(from other: Structure) -> String? {
        let found = zip(parts, other.parts).filter { $0.text != $1.text }.map {
            "\($0.name): ours \($0.text), recorded \($1.text)"
        }
        return found.isEmpty ? nil : found.joined(separator: "; ")
    }

    /// Path and query, the ids as `*`.
    private static func address(_ text: String?) -> String {
        guard let text, let path = HTTPURL(text).map({ text.dropFirst($0.origin.count) }) else {
            return text == nil ? "absent" : "no URL"
        }
        let query = path.drop { $0 != "?" }
        let segments = path.prefix { $0 != "?" }.split(separator: "/").map { segment in
            segment.utf8.contains { (0x30...0x39).contains($0) } && segment.utf8.count > 20
                ? "*" : String(segment)
        }
        return segments.dropFirst().joined(separator: "/") + query
    }

    // MARK: Bodies

    private static func form(_ body: String) -> String {
        guard !body.isEmpty else { return "empty" }
        if let xml = try? XMLElement(parsing: Array(body.utf8)) { return form(xml) }
        if let json = try? JSONValue(parsing: Array(body.utf8)) { return form(json) }
        return "text"
    }

    /// Names with their namespaces, in order; the entries of a feed in any order.
    private static func form(_ element: XMLElement) -> String {
        let attributes = element.attributes.keys.map { "\($0.namespace)|\($0.local)" }.sorted().joined(
            separator: ","
        )
        var children = element.elements.map(form)
        if element.name.local == "feed" {
            let isEntry = { (text: String) in text.hasPrefix("http://www.w3.org/2005/Atom|entry") }
            children = children.filter { !isEntry($0) } + children.filter(isEntry).sorted()
        }
        let text =
            element.elements.isEmpty ? (element.isNil ? "nil" : element.text.isEmpty ? "empty" : "text") : ""
        return
            "\(element.name.namespace)|\(element.name.local)[\(attributes)](\(text)\(children.joined(separator: " ")))"
    }

    private static func form(_ value: JSONValue) -> String {
        switch value {
        case .null: "null"
        case .bool: "bool"
        case .number: "number"
        case .string: "string"
        case .array(let items): "[" + Set(items.map(form)).sorted().joined(separator: ",") + "]"
        case .object(let object):
            "{" + object.members.map { "\($0.name):\(form($0.value))" }.joined(separator: ",") + "}"
        }
    }
}

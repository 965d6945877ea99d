package import JSONBytes
import TidingsModels

/// One line of the daemon's output. Every push ends in exactly one of the events in ``pushNames``.
public struct DeviceEvent: Sendable, Equatable {
    /// What happened.
    public let name: String
    package let fields: JSONObject

    package init(_ name: String, _ fields: KeyValuePairs<String, JSONValue> = [:]) {
        self.name = name
        self.fields = JSONObject(fields)
    }

    package init(_ name: String, fields: JSONObject) {
        self.name = name
        self.fields = fields
    }

    /// The events that end a push.
    public static let pushNames: Set<String> = [
        "notification", "alert", "local_notification", "notice", "fetch_failed", "unreadable", "silent",
    ]

    /// A member as text; nil when it is absent or not text.
    public subscript(name: String) -> String? { fields[name]?.stringValue }

    /// One JSON object without a line end.
    public var line: String {
        var object = JSONObject(["event": .string(name)])
        for member in fields.members { object[member.name] = member.value }
        return JSONValue.object(object).text
    }
}

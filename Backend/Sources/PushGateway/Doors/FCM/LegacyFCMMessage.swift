import JSONBytes
import TidingsModels

/// A message of the legacy protocol, from JSON or from a form.
struct LegacyFCMMessage {
    enum Target {
        case tokens([String])
        case condition(FCMCondition)
    }

    struct Refusal: Error {
        /// A line for people; the service has one, too.
        let message: String
        /// The word of a form's answer.
        var form = "InvalidParameters"
    }

    let target: Target
    let payload: JSONValue
    let priority: String?
    let collapseKey: String?
    let lifetime: Duration
    let isDryRun: Bool
    /// What every recipient is told instead of a message id.
    let error: String?

    private static let tokenCountMax = 1000
    private static let fields: Set<String> = [
        "to", "registration_ids", "condition", "collapse_key", "priority", "content_available",
        "mutable_content", "time_to_live", "delay_while_idle", "restricted_package_name", "dry_run", "data",
        "notification", "notification_key", "android_channel_id", "direct_boot_ok", "fcm_options",
    ]

    init(json bytes: [UInt8]) throws(Refusal) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: bytes) } catch {
            throw Refusal(message: "JSON_PARSING_ERROR: \(error)")
        }
        guard case .object(let object) = json else {
            throw Refusal(message: "JSON_TYPE_ERROR: the message must be an object.")
        }
        if let unknown = object.members.first(where: { !Self.fields.contains($0.name) }) {
            throw Refusal(message: "INVALID_PARAMETERS: the field '\(unknown.name)' is not known.")
        }
        func typed<Value>(
            _ name: String,
            _ type: String,
            _ read: (JSONValue) -> Value?
        ) throws(Refusal) -> Value? {
            guard let value = object[name], value != .null else { return nil }
            guard let result = read(value) else {
                throw Refusal(message: "JSON_TYPE_ERROR: Field \"\(name)\" must be \(type).")
            }
            return result
        }
        let to = try typed("to", "a string", \.stringValue)
        let ids = try typed("registration_ids", "an array of strings") { value -> [String]? in
            let texts = value.arrayValue?.map(\.stringValue)
            return texts.flatMap { texts in texts.contains(nil) ? nil : texts.compactMap(\.self) }
        }
        let condition = try typed("condition", "a string", \.stringValue)
        let target = try Self.target(to, ids, condition)
        var payload = JSONObject()
        var data = JSONObject()
        for member in try typed("data", "an object", \.objectValue)?.members ?? [] {
            // Whatever is no text becomes one.
            data[member.name] = .string(member.value.stringValue ?? member.value.text)
        }
        if !data.isEmpty { payload["data"] = .object(data) }
        if let notification = try typed("notification", "an object", \.objectValue) {
            payload["notification"] = .object(notification)
        }
        let seconds = try typed("time_to_live", "a number", \.integerValue)
        self.init(
            target,
            payload,
            priority: try typed("priority", "a string", \.stringValue)?.lowercased(),
            collapseKey: try typed("collapse_key", "a string", \.stringValue),
            seconds: seconds,
            isDryRun: try typed("dry_run", "a boolean", \.boolValue) ?? false
        )
    }

    /// `registration_id=…&collapse_key=…&data.name=value`.
    init(form bytes: [UInt8]) throws(Refusal) {
        guard let form = FormBody(bytes) else { throw Refusal(message: "The body is not a form.") }
        guard let token = form["registration_id"], !token.isEmpty else {
            throw Refusal(message: "registration_id is missing.", form: "MissingRegistration")
        }
        var data = JSONObject()
        for (name, value) in form.pairs where name.hasPrefix("data.") {
            data[String(name.dropFirst("data.".count))] = .string(value)
        }
        let seconds = form["time_to_live"].map { Int($0) ?? -1 }
        self.init(
            .tokens([token]),
            data.isEmpty ? JSONObject() : JSONObject(["data": .object(data)]),
            priority: nil,
            collapseKey: form["collapse_key"],
            seconds: seconds,
            isDryRun: ["1", "true"].contains(form["dry_run"]?.lowercased())
        )
    }

    private init(
        _ target: Target,
        _ payload: JSONObject,
        priority: String?,
        collapseKey: String?,
        seconds: Int?,
        isDryRun: Bool
    ) {
        self.target = target
        self.payload = .object(payload)
        self.priority = priority ?? (payload["notification"] == nil ? "normal" : "high")
        self.collapseKey = collapseKey
        self.isDryRun = isDryRun
        let range = 0...FCMMessage.lifetimeMax
        lifetime = .seconds(seconds ?? FCMMessage.lifetimeMax)
        let isReserved =
            payload["data"]?.objectValue?.members.contains { FCMMessage.isReserved($0.name) } ?? false
        error =
            if FCMMessage.byteCount(payload) > FCMMessage.payloadByteCountMax {
                "MessageTooBig"
            } else if isReserved { "InvalidDataKey" } else if let seconds, !range.contains(seconds) {
                "InvalidTtl"
            } else if let priority, !["normal", "high"].contains(priority) { "InvalidParameters" } else {
                nil
            }
    }

    private static func target(
        _ to: String?,
        _ ids: [String]?,
        _ condition: String?
    ) throws(Refusal) -> Target {
        guard [to != nil, ids != nil, condition != nil].count(where: \.self) == 1 else {
            throw Refusal(message: "Exactly one of to, registration_ids and condition must be set.")
        }
        if let ids {
            guard (1...tokenCountMax).contains(ids.count) else {
                throw Refusal(message: "registration_ids must hold 1 to \(tokenCountMax) tokens.")
            }
            return .tokens(ids)
        }
        if let condition {
            guard let condition = FCMCondition(condition) else {
                throw Refusal(message: "INVALID_PARAMETERS: condition is not an expression over topics.")
            }
            return .condition(condition)
        }
        guard let to, to.hasPrefix("/topics/") else { return .tokens([to ?? ""]) }
        guard let topic = FCMCondition.topicName(to) else {
            throw Refusal(message: "INVALID_PARAMETERS: the topic's name is not one of [a-zA-Z0-9-_.~%]+.")
        }
        return .condition(.topic(topic))
    }
}

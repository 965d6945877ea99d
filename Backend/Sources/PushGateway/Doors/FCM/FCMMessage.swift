import JSONBytes
import TidingsModels

/// What a device gets of a v1 message, and who gets it (push services reference, section 2.2).
struct FCMMessage {
    enum Target {
        case handle(PlatformHandle)
        case condition(FCMCondition)
    }

    let target: Target
    let payload: JSONValue
    let priority: String?
    let collapseKey: String?
    let lifetime: Duration
    let validateOnly: Bool

    static let lifetimeMax = 2_419_200
    static let payloadByteCountMax = 4096

    init(_ json: JSONValue) throws(FCMRefusal) {
        guard case .object(let request) = json, case .object(let message)? = request["message"] else {
            throw FCMRefusal.argument("message", "The message is missing.")
        }
        if let fault = FCMFields.fault(in: request) {
            throw FCMRefusal.argument(fault.path, fault.message)
        }
        validateOnly = (request["validate_only"] ?? request["validateOnly"])?.boolValue ?? false
        target = try Self.target(message)
        let android = message["android"]?.objectValue ?? JSONObject()
        for data in [message["data"], android["data"]] { try Self.check(data) }
        var payload = JSONObject()
        if let data = android["data"] ?? message["data"] { payload["data"] = data }
        if let notification = message["notification"] { payload["notification"] = notification }
        if let own = android["notification"] { payload["android"] = .object(["notification": own]) }
        self.payload = .object(payload)
        guard Self.byteCount(payload) <= Self.payloadByteCountMax else {
            throw FCMRefusal.argument("message", "Android message is too big")
        }
        priority = android["priority"]?.stringValue?.lowercased()
        if let priority, !["normal", "high"].contains(priority) {
            throw FCMRefusal.argument("message.android.priority", "The priority must be NORMAL or HIGH.")
        }
        collapseKey = (android["collapse_key"] ?? android["collapseKey"])?.stringValue
        lifetime = try Self.lifetime(android["ttl"])
    }

    private static func target(_ message: JSONObject) throws(FCMRefusal) -> Target {
        let named = ["token", "topic", "condition", "fid"].filter { message[$0] != nil }
        guard named.count == 1, let name = named.first, let text = message[name]?.stringValue else {
            throw FCMRefusal.argument(
                "message",
                "Exactly one of token, topic, condition and fid must be set."
            )
        }
        switch name {
        case "topic":
            guard let topic = FCMCondition.topicName(text) else {
                throw FCMRefusal.argument(
                    "message.topic",
                    "Topic name does not match [a-zA-Z0-9-_.~%]+"
                )
            }
            return .condition(.topic(topic))
        case "condition":
            guard let condition = FCMCondition(text) else {
                throw FCMRefusal.argument(
                    "message.condition",
                    "Invalid condition expression: 'name' in topics, joined by &&, ||, ! and parentheses, with at most "
                        + "\(FCMCondition.topicCountMax) topics."
                )
            }
            return .condition(condition)
        default:
            guard let handle = try? PlatformHandle(text, platform: .fcmV1) else {
                throw FCMRefusal.badToken
            }
            return .handle(handle)
        }
    }

    private static func check(_ data: JSONValue?) throws(FCMRefusal) {
        for member in data?.objectValue?.members ?? [] where isReserved(member.name) {
            throw FCMRefusal.argument("message.data", "Invalid data payload key: \(member.name)")
        }
    }

    /// Names that the service keeps for itself.
    static func isReserved(_ name: String) -> Bool {
        ["from", "message_type", "gcm"].contains(name) || name.hasPrefix("google")
            || name.hasPrefix("gcm.notification")
    }

    /// What counts towards the limit: names and values of the data, values of the notification.
    static func byteCount(_ payload: JSONObject) -> Int {
        var count = 0
        for part in ["data", "notification"] {
            for member in payload[part]?.objectValue?.members ?? [] {
                if part == "data" { count += member.name.utf8.count }
                count += (member.value.stringValue ?? member.value.text).utf8.count
            }
        }
        return count
    }

    /// `"<seconds>[.fraction]s"`, at most 28 days, which is also the default.
    private static func lifetime(_ ttl: JSONValue?) throws(FCMRefusal) -> Duration {
        guard let text = ttl?.stringValue else { return .seconds(lifetimeMax) }
        guard text.hasSuffix("s"), let seconds = Double(text.dropLast()),
            (0...Double(lifetimeMax)).contains(seconds)
        else {
            throw FCMRefusal.argument(
                "message.android.ttl",
                "Invalid TTL: it must be from 0s to \(lifetimeMax)s."
            )
        }
        return .milliseconds(Int64(seconds * 1000))
    }
}

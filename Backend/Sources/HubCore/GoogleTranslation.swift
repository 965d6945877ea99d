import JSONBytes
import TidingsModels

/// The legacy Google payload in the form of FCM v1, since Google shut the legacy service down.
enum GoogleTranslation {
    /// Members of the legacy `notification` that v1 knows for all platforms; the others are Android's.
    private static let common = ["title", "body", "image"]

    static func fcmV1(from legacy: JSONObject) throws(HubError) -> JSONObject {
        var message = JSONObject()
        if let data = legacy["data"] {
            guard case .object(let object) = data else {
                throw HubError(.badRequest, "The member 'data' must be a JSON object.")
            }
            message["data"] = .object(try strings(object))
        }
        var android = JSONObject()
        if case .object(let notification)? = legacy["notification"] {
            var shared = JSONObject()
            var own = JSONObject()
            for member in notification.members {
                if common.contains(member.name) {
                    shared[member.name] = member.value
                } else {
                    own[member.name == "android_channel_id" ? "channel_id" : member.name] = member.value
                }
            }
            message["notification"] = .object(shared)
            if !own.isEmpty { android["notification"] = .object(own) }
        }
        if let key = legacy["collapse_key"] { android["collapse_key"] = key }
        if let priority = legacy["priority"]?.stringValue { android["priority"] = .string(priority) }
        if let package = legacy["restricted_package_name"] { android["restricted_package_name"] = package }
        switch legacy["time_to_live"] {
        case .number(let text)?, .string(let text)?: android["ttl"] = .string(text + "s")
        default: break
        }
        if !android.isEmpty { message["android"] = .object(android) }
        return JSONObject(["message": .object(message)])
    }

    /// The legacy service turned scalars into strings; v1 takes strings only.
    private static func strings(_ object: JSONObject) throws(HubError) -> JSONObject {
        var result = JSONObject()
        for member in object.members {
            switch member.value {
            case .string: result[member.name] = member.value
            case .number(let text): result[member.name] = .string(text)
            case .bool(let value): result[member.name] = .string(value ? "true" : "false")
            case .null, .array, .object: result[member.name] = .string(member.value.text)
            }
        }
        return result
    }
}

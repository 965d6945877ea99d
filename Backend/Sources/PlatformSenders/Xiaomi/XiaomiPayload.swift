import HTTPMessages
import HubCore
import JSONBytes
import OutboundHTTP
import TidingsModels

/// The requests to Mi Push (Xiaomi: "Server API"; push services reference, section 4.4).
///
/// The hub's native payload is JSON, the service's is a form. With `title`, `description` or `payload` among its members the object
/// is taken for the form: `extra` is an object of texts, `payload` may be JSON. Any other object is the `payload` itself, for the app
/// alone (`pass_through` 1).
enum XiaomiPayload {
    /// A payload that makes no form.
    struct Refusal: Error {
        let reason: String
    }

    /// Whom a message reaches is told by tags, not by the payload.
    private static let addressing: Set = [
        "registration_id", "alias", "user_account", "topic", "topics", "topic_op", "regid",
    ]

    /// - Throws: ``Refusal`` for a member that no form can hold.
    static func request(
        _ payload: PlatformPayload,
        registrationID: String,
        address: HTTPURL,
        settings: XiaomiSettings
    ) throws(Refusal) -> OutboundRequest {
        var fields = try self.fields(payload.body)
        if let name = settings.packageName, !fields.contains(where: { $0.name == "restricted_package_name" })
        {
            fields.append(("restricted_package_name", name))
        }
        fields.append(("registration_id", registrationID))
        return OutboundRequest(
            "POST",
            address,
            fields: ["Authorization": "key=" + settings.appSecret, "Content-Type": FormFields.contentType],
            body: FormFields.body(fields)
        )
    }

    private static func fields(_ body: [UInt8]) throws(Refusal) -> [(name: String, value: String)] {
        guard case .object(let object)? = try? JSONValue(parsing: body) else {
            throw Refusal(reason: "the payload is not a JSON object")
        }
        let isShown = object["title"] != nil || object["description"] != nil
        guard isShown || object["payload"] != nil else {
            return [("payload", String(decoding: body, as: UTF8.self)), ("pass_through", "1")]
        }
        var fields: [(name: String, value: String)] = []
        for member in object.members where !addressing.contains(member.name) {
            switch member.value {
            case .object(let extra) where member.name == "extra":
                for entry in extra.members {
                    fields.append(("extra." + entry.name, entry.value.stringValue ?? entry.value.text))
                }
            case .object, .array:
                guard member.name == "payload" else {
                    throw Refusal(reason: "'\(member.name)' is neither text nor a number")
                }
                fields.append((member.name, member.value.text))
            case .string(let text), .number(let text): fields.append((member.name, text))
            case .bool(let value): fields.append((member.name, value ? "1" : "0"))
            case .null: break
            }
        }
        if object["pass_through"] == nil { fields.append(("pass_through", isShown ? "0" : "1")) }
        return fields
    }
}

import JSONBytes
import TidingsModels
import XMLBytes

/// The payloads that the back end sends, made by serialisers: no text of a user's can become structure.
enum PlatformMessages {
    /// The platforms that a secure or rich push goes to.
    static let all: [Platform] = [.apns, .wns, .fcmV1, .browser]

    /// A text that is shown at once.
    static func text(_ text: String, _ platform: Platform) throws(HubError) -> HubNotification {
        switch platform {
        case .apns:
            let payload = JSONValue.object(["aps": .object(["alert": .string(text)])])
            return .native(
                .apns,
                payload.text,
                headers: [.init("apns-push-type", "alert"), .init("apns-priority", "10")]
            )
        case .gcm, .fcmV1:
            return .native(
                .fcmV1,
                JSONValue.object(["message": .object(["data": .object(["message": .string(text)])])]).text
            )
        case .wns:
            guard XMLText.isAllowed(text) else {
                throw HubError(
                    .badRequest,
                    "The message holds a control character that XML cannot carry to Windows."
                )
            }
            let toast =
                "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">\(XMLText.escaped(text))</text></binding></visual></toast>"
            return .native(.wns, toast, headers: [.init("X-WNS-Type", "wns/toast")])
        case .browser: return .native(.browser, JSONValue.object(["message": .string(text)]).text)
        case .mpns, .adm, .baidu, .xiaomi:
            throw HubError(
                .badRequest,
                "pns=\(platform.appName) is not offered. Offered are apns, wns, fcm and browser."
            )
        }
    }

    /// A wake-up with the id of a secure item, for a platform of ``all``: nothing to show, nothing secret.
    static func secure(_ id: Int32, _ platform: Platform) -> HubNotification {
        switch platform {
        case .apns: silent(["aps": .object(["content-available": 1]), "secureId": .string(String(id))])
        case .gcm, .fcmV1: data(["secureId": .string(String(id))])
        case .browser: .native(.browser, JSONValue.object(["secureId": .string(String(id))]).text)
        default: .native(.wns, String(id), headers: raw)
        }
    }

    /// A wake-up with the id, message and type of a rich item, for a platform of ``all``.
    static func rich(_ id: Int32, message: String, type: String, _ platform: Platform) -> HubNotification {
        let values: KeyValuePairs<String, JSONValue> = [
            "richId": .string(String(id)), "richMessage": .string(message), "richType": .string(type),
        ]
        switch platform {
        case .apns:
            return silent([
                "aps": .object(["content-available": 1]), "richId": .string(String(id)),
                "richMessage": .string(message),
                "richType": .string(type),
            ])
        case .gcm, .fcmV1: return data(values)
        case .browser: return .native(.browser, JSONValue.object(values).text)
        default:
            return .native(.wns, JSONValue.object(values).text, headers: raw)
        }
    }

    /// WNS keeps a raw notification for a device that is away only when it is asked to.
    private static let raw = [
        RegistrationTemplate.Header("X-WNS-Type", "wns/raw"),
        RegistrationTemplate.Header("X-WNS-Cache-Policy", "cache"),
    ]

    /// Apple drops silent pushes that carry a sound, or that do not say that they are silent.
    private static func silent(_ members: KeyValuePairs<String, JSONValue>) -> HubNotification {
        .native(
            .apns,
            JSONValue.object(members).text,
            headers: [.init("apns-push-type", "background"), .init("apns-priority", "5")]
        )
    }

    private static func data(_ members: KeyValuePairs<String, JSONValue>) -> HubNotification {
        .native(
            .fcmV1,
            JSONValue.object([
                "message": .object(["data": .object(members), "android": .object(["priority": "high"])])
            ]).text
        )
    }

    /// Refuses here what the platform would refuse later, where the sender can still hear of it.
    static func checkSize(_ notification: HubNotification) throws(HubError) {
        guard case .native(let platform) = notification.format else { return }
        let (count, countMax): (Int, Int)
        switch platform {
        case .apns: (count, countMax) = (notification.body.count, 4096)
        case .wns: (count, countMax) = (notification.body.count, 5000)
        case .browser: (count, countMax) = (notification.body.count, 3993)
        default:
            let data = (try? JSONValue(parsing: notification.body))?["message"]?["data"]?.objectValue
            count = (data?.members ?? []).reduce(0) {
                $0 + $1.name.utf8.count + ($1.value.stringValue ?? "").utf8.count
            }
            countMax = 4096
        }
        guard count <= countMax else {
            throw HubError(
                .tooLarge,
                "The \(platform.appName) payload of this message has \(count) bytes; the platform takes at most \(countMax)."
            )
        }
    }
}

/// The text of a `POST /api/notifications?pns=&to_tag=`.
enum MessageBody {
    /// A JSON string; else, when the tutorials' client put quotes around raw text, the text between them; else the text.
    static func read(_ bytes: [UInt8]) throws(HubError) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw HubError(.badRequest, "The message is not UTF-8.")
        }
        if let string = (try? JSONValue(parsing: bytes))?.stringValue { return string }
        if text.utf8.count >= 2, text.hasPrefix("\""), text.hasSuffix("\"") {
            return String(text.dropFirst().dropLast())
        }
        return text
    }
}

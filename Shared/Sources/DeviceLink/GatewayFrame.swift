import HTTPMessages
import JSONBytes
package import TidingsModels

/// What the gateway sends on the autopush WebSocket.
package enum GatewayFrame: Equatable, Sendable {
    case hello(uaid: String, broadcasts: BroadcastNews = BroadcastNews())
    /// `endpoint` is the handle, or the reason when `status` is not 200.
    case register(channelID: String, status: Int, endpoint: String)
    case unregister(channelID: String, status: Int)
    case notification(DeviceNotification)
    case broadcast(BroadcastNews)
    case pong

    /// Reads a text frame.
    package init(parsing text: String) throws(LinkViolation) {
        let object = try LinkJSON.object(text)
        switch object["messageType"]?.stringValue {
        case "hello":
            guard let uaid = object["uaid"]?.stringValue, !uaid.isEmpty, uaid.utf8.count <= 128 else {
                throw LinkViolation.json("hello has no uaid")
            }
            self = .hello(uaid: uaid, broadcasts: try BroadcastNews(object["broadcasts"]))
        case "register":
            guard let channelID = object["channelID"]?.stringValue,
                let status = object["status"]?.integerValue
            else {
                throw LinkViolation.json("register has no channelID or status")
            }
            self = .register(
                channelID: channelID,
                status: status,
                endpoint: object["pushEndpoint"]?.stringValue ?? ""
            )
        case "unregister":
            self = .unregister(
                channelID: object["channelID"]?.stringValue ?? "",
                status: object["status"]?.integerValue ?? 0
            )
        case "notification": self = .notification(try DeviceNotification(object))
        case "broadcast": self = .broadcast(try BroadcastNews(object["broadcasts"]))
        case nil where object.isEmpty: self = .pong
        default: throw LinkViolation.json("the messageType is not known")
        }
    }

    /// The text frame.
    package var text: String {
        switch self {
        case .hello(let uaid, let broadcasts):
            LinkJSON.text([
                ("messageType", "hello"), ("uaid", .string(uaid)), ("status", 200), ("use_webpush", true),
                ("broadcasts", broadcasts.json),
            ])
        case .register(let channelID, let status, let endpoint):
            LinkJSON.text([
                ("messageType", "register"), ("channelID", .string(channelID)), ("status", .number(status)),
                ("pushEndpoint", .string(endpoint)),
            ])
        case .unregister(let channelID, let status):
            LinkJSON.text([
                ("messageType", "unregister"), ("channelID", .string(channelID)), ("status", .number(status)),
            ])
        case .notification(let notification): notification.text
        case .broadcast(let news):
            LinkJSON.text([("messageType", "broadcast"), ("broadcasts", news.json)])
        case .pong: "{}"
        }
    }
}

/// A push as a device receives it.
package struct DeviceNotification: Equatable, Sendable {
    package var channelID: String
    /// Unique: the message id that a device acknowledges and drops repeats by.
    package var version: String
    /// The platform whose push this is; nil for Web Push.
    package var platform: Platform?
    /// `apns-push-type`, `X-WNS-Type` and so on, or `encoding` for Web Push.
    package var headers: [String: String]
    package var data: [UInt8]

    /// The header that holds the trace-id; ours.
    package static let traceHeader = "trace"
    package var trace: TraceID? { headers[Self.traceHeader].flatMap { TraceID($0) } }

    package init(
        channelID: String,
        version: String,
        platform: Platform?,
        headers: [String: String],
        data: [UInt8]
    ) {
        self.channelID = channelID
        self.version = version
        self.platform = platform
        self.headers = headers
        self.data = data
    }

    fileprivate init(_ object: JSONObject) throws(LinkViolation) {
        guard let channelID = object["channelID"]?.stringValue, let version = object["version"]?.stringValue
        else {
            throw LinkViolation.json("a notification has no channelID or version")
        }
        guard let data = Base64.decode(object["data"]?.stringValue ?? "") else {
            throw LinkViolation.json("the data of a notification is not base64url")
        }
        var headers: [String: String] = [:]
        for member in object["headers"]?.objectValue?.members ?? [] {
            headers[member.name] = member.value.stringValue ?? ""
        }
        self.init(
            channelID: channelID,
            version: version,
            platform: object["platform"]?.stringValue.flatMap(Platform.init(appName:)),
            headers: headers,
            data: data
        )
    }

    fileprivate var text: String {
        var members: [(String, JSONValue)] = [
            ("messageType", "notification"), ("channelID", .string(channelID)), ("version", .string(version)),
        ]
        if let platform { members.append(("platform", .string(platform.appName))) }
        if !data.isEmpty { members.append(("data", .string(Base64.encodeURL(data)))) }
        if !headers.isEmpty {
            var object = JSONObject()
            for (name, value) in headers.sorted(by: { $0.key < $1.key }) { object[name] = .string(value) }
            members.append(("headers", .object(object)))
        }
        return LinkJSON.text(members)
    }

    /// A header, its name compared without case.
    package func header(_ name: String) -> String? {
        headers.first { $0.key.lowercased() == name.lowercased() }?.value
    }
}

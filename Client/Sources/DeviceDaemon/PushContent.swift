package import DeviceLink
import JSONBytes
import TidingsModels
import XMLBytes

/// What a push says to its app, read from the payload of whichever platform the device stands for.
package enum PushContent: Equatable, Sendable {
    /// Text to show at once.
    case text(title: String?, body: String)
    /// Fetch this item; its payload is the text.
    case secure(id: Int32)
    /// Show the message; the content is fetched by id.
    case rich(id: Int32, message: String, type: String)
    /// A wake-up without anything to show.
    case silent
    /// The payload is not what its platform sends.
    case unreadable(reason: String)

    package init(_ notification: DeviceNotification) {
        switch notification.platform {
        case .apns: self = Self.apple(notification.data)
        // Amazon's messages have the same `data`.
        case .gcm, .fcmV1, .adm: self = Self.google(notification.data)
        case .wns: self = Self.windows(notification)
        case .mpns: self = Self.phone(notification)
        case .browser?: self = Self.browser(notification.data)
        case .baidu?, .xiaomi?, nil:
            self = .unreadable(reason: "a push without a known platform")
        }
    }

    private static func apple(_ data: [UInt8]) -> PushContent {
        guard case .object(let object)? = try? JSONValue(parsing: data) else {
            return .unreadable(reason: "the payload is not a JSON object")
        }
        if let stored = stored(object) { return stored }
        let aps = object["aps"]
        if let text = aps?["alert"]?.stringValue { return .text(title: nil, body: text) }
        if let alert = aps?["alert"]?.objectValue, let body = alert["body"]?.stringValue {
            return .text(title: alert["title"]?.stringValue, body: body)
        }
        if let text = object["inAppMessage"]?.stringValue { return .text(title: nil, body: text) }
        return .silent
    }

    private static func google(_ data: [UInt8]) -> PushContent {
        guard case .object(let object)? = try? JSONValue(parsing: data) else {
            return .unreadable(reason: "the payload is not a JSON object")
        }
        if case .object(let data)? = object["data"] {
            if let stored = stored(data) { return stored }
            if let text = data["message"]?.stringValue {
                return .text(title: data["title"]?.stringValue, body: text)
            }
        }
        if let body = object["notification"]?["body"]?.stringValue {
            return .text(title: object["notification"]?["title"]?.stringValue, body: body)
        }
        return .silent
    }

    /// What an app's service worker would do: JSON with an id, a message or a title and body; else the text itself.
    private static func browser(_ data: [UInt8]) -> PushContent {
        guard case .object(let object)? = try? JSONValue(parsing: data) else {
            return data.isEmpty ? .silent : .text(title: nil, body: String(decoding: data, as: UTF8.self))
        }
        if let stored = stored(object) { return stored }
        guard let body = object["message"]?.stringValue ?? object["body"]?.stringValue else { return .silent }
        return .text(title: object["title"]?.stringValue, body: body)
    }

    private static func windows(_ notification: DeviceNotification) -> PushContent {
        if notification.header("X-WNS-Type")?.lowercased() == "wns/raw" { return raw(notification.data) }
        guard let root = try? XMLElement(parsing: notification.data) else {
            return .unreadable(reason: "the payload is not XML")
        }
        let texts = Self.texts(root)
        if texts.isEmpty { return .silent }
        return .text(
            title: texts.count > 1 ? texts[0] : nil,
            body: texts.dropFirst(texts.count > 1 ? 1 : 0).joined(separator: "\n")
        )
    }

    private static func raw(_ data: [UInt8]) -> PushContent {
        let text = String(decoding: data, as: UTF8.self)
        // The secure-push tutorial's raw body is the bare id.
        if let id = itemID(text) { return .secure(id: id) }
        if case .object(let object)? = try? JSONValue(parsing: data), let stored = stored(object) {
            return stored
        }
        return .text(title: nil, body: text)
    }

    /// What a Windows phone shows: both lines of a toast, a tile's title.
    private static func phone(_ notification: DeviceNotification) -> PushContent {
        guard notification.header("X-WindowsPhone-Target") != nil else { return raw(notification.data) }
        guard let content = (try? XMLElement(parsing: notification.data))?.elements.first else {
            return .unreadable(reason: "the payload is not XML with a toast or tile")
        }
        let lines = ["Text1", "Text2"].compactMap { content.first($0)?.text }.filter { !$0.isEmpty }
        if let last = lines.last { return .text(title: lines.count > 1 ? lines[0] : nil, body: last) }
        guard let title = content.first("Title")?.text, !title.isEmpty else { return .silent }
        return .text(title: nil, body: title)
    }

    private static func texts(_ element: XMLElement) -> [String] {
        element.name.local == "text" ? [element.text] : element.elements.flatMap(texts)
    }

    /// A secure or rich id, as a string or a number.
    private static func stored(_ object: JSONObject) -> PushContent? {
        if let value = object["secureId"] {
            return itemID(value).map { .secure(id: $0) }
                ?? .unreadable(reason: "secureId is not a 31-bit integer")
        }
        if let value = object["richId"] {
            guard let id = itemID(value) else { return .unreadable(reason: "richId is not a 31-bit integer") }
            return .rich(
                id: id,
                message: object["richMessage"]?.stringValue ?? "",
                type: object["richType"]?.stringValue ?? ""
            )
        }
        return nil
    }

    private static func itemID(_ value: JSONValue) -> Int32? {
        switch value {
        case .string(let text), .number(let text): itemID(text)
        default: nil
        }
    }

    private static func itemID(_ text: String) -> Int32? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int32(text)
    }
}

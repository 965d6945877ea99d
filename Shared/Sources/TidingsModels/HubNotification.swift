/// The id of a send: 32 hex digits, a UTC time and two integers, joined by `-`; opaque to clients.
public struct NotificationID: Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let text: String

    package init(unchecked text: String) { self.text = text }

    /// Nil unless the text could be an id of ours: up to 128 characters of `[0-9a-zA-Z-]`.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= 128,
            text.utf8.allSatisfy({
                $0 == UInt8(ascii: "-") || (HubTag.isLegal($0) && $0 > 0x2F && $0 != 0x3A)
            })
        else { return nil }
        self.text = text
    }

    package static func random(
        at now: Timestamp,
        using generator: inout some RandomNumberGenerator
    ) -> NotificationID {
        var digits = ""
        for _ in 0..<2 {
            let half = String(UInt64.random(in: .min ... .max, using: &generator), radix: 16)
            digits += String(repeating: "0", count: 16 - half.utf8.count) + half
        }
        return NotificationID(unchecked: "\(digits)-\(now.compact)-1-1")
    }

    /// The text.
    public var description: String { text }
}

/// What a hub sends: a native payload for one platform, or values for every template.
public struct HubNotification: Equatable, Sendable {
    /// The kind of payload.
    public enum Format: Hashable, Sendable {
        /// A platform's own payload, for its native registrations.
        case native(Platform)
        /// A flat JSON object of values, for template registrations on all platforms.
        case template

        /// The header value.
        package var text: String {
            switch self {
            case .native(let platform): platform.format
            case .template: "template"
            }
        }

        package init?(_ text: String) {
            if text.lowercased() == "template" {
                self = .template
            } else if let platform = Platform(format: text) {
                self = .native(platform)
            } else {
                return nil
            }
        }
    }

    /// The kind of payload.
    public var format: Format
    /// The payload or the values, UTF-8.
    public var body: [UInt8]
    /// `apns-*`, `X-WNS-*` and similar, passed on.
    public var headers: [RegistrationTemplate.Header]

    /// A notification.
    public init(format: Format, body: [UInt8], headers: [RegistrationTemplate.Header] = []) {
        self.format = format
        self.body = body
        self.headers = headers
    }

    /// The values of a template notification.
    public static func template(
        _ json: String,
        headers: [RegistrationTemplate.Header] = []
    ) -> HubNotification {
        HubNotification(format: .template, body: Array(json.utf8), headers: headers)
    }

    /// A native payload.
    public static func native(
        _ platform: Platform,
        _ payload: String,
        headers: [RegistrationTemplate.Header] = []
    ) -> HubNotification {
        HubNotification(format: .native(platform), body: Array(payload.utf8), headers: headers)
    }
}

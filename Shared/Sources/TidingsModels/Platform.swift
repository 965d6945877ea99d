/// A push service that a registration belongs to.
public enum Platform: String, CaseIterable, Sendable, Hashable {
    /// Apple Push Notification service.
    case apns
    /// The legacy Google service (GCM, FCM), whose payloads travel over FCM v1 today.
    case gcm
    /// Firebase Cloud Messaging, HTTP v1.
    case fcmV1
    /// Windows Notification Service.
    case wns
    /// Microsoft Push Notification Service (Windows Phone).
    case mpns

    /// The value of `ServiceBusNotification-Format` and of `TargetPlatforms`.
    package var format: String {
        switch self {
        case .apns: "apple"
        case .gcm: "gcm"
        case .fcmV1: "fcmv1"
        case .wns: "windows"
        case .mpns: "windowsphone"
        }
    }

    /// Reads a format; `fcm` is an alias of `gcm`. Case does not matter.
    package init?(format: String) {
        let lower = format.lowercased()
        if lower == "fcm" {
            self = .gcm
            return
        }
        guard let found = Self.allCases.first(where: { $0.format == lower }) else { return nil }
        self = found
    }

    /// Reads the names that apps use: `apns`, `ios`, `apple`, `wns`, `windows`, `mpns`, `gcm`, `fcm`, `fcmv1`.
    /// The Google names that an app uses today mean FCM v1.
    public init?(appName: String) {
        switch appName.lowercased() {
        case "apns", "ios", "apple": self = .apns
        case "gcm", "fcm", "fcmv1", "android": self = .fcmV1
        case "wns", "windows": self = .wns
        case "mpns", "windowsphone": self = .mpns
        default: return nil
        }
    }

    /// The name that an app uses.
    public var appName: String {
        switch self {
        case .apns: "apns"
        case .gcm, .fcmV1: "fcm"
        case .wns: "wns"
        case .mpns: "mpns"
        }
    }
}

/// Where one app on one device is reached: an APNs token, an FCM token, a channel URI.
public struct PlatformHandle: Hashable, Sendable {
    /// The service.
    public let platform: Platform
    /// The handle in its stored form: APNs tokens in upper-case hex, others as given.
    public let text: String

    /// The longest handle in bytes.
    public static let byteCountMax = 2048

    /// Checks the form that the platform demands.
    /// - Throws: ``HubError`` `.badRequest` with what was seen and what is allowed.
    public init(_ text: String, platform: Platform) throws(HubError) {
        guard !text.isEmpty else { throw HubError(.badRequest, "The \(platform.format) handle is empty.") }
        guard text.utf8.count <= Self.byteCountMax else {
            throw HubError(
                .badRequest,
                "The \(platform.format) handle has \(text.utf8.count) bytes, at most \(Self.byteCountMax) are allowed."
            )
        }
        switch platform {
        case .apns:
            guard text.utf8.count.isMultiple(of: 2), text.utf8.allSatisfy(Self.isHexDigit) else {
                throw HubError(
                    .badRequest,
                    "The device token is not hexadecimal with an even number of digits (\(text.utf8.count) characters seen)."
                )
            }
            self.text = text.uppercased()
        case .gcm, .fcmV1:
            guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
                throw HubError(.badRequest, "The registration token holds a character outside visible ASCII.")
            }
            self.text = text
        case .wns, .mpns:
            guard Self.isAbsoluteURI(text) else {
                throw HubError(.badRequest, "The channel is not an absolute http or https URI.")
            }
            self.text = text
        }
        self.platform = platform
    }

    /// A handle that was checked before it was stored.
    package init(unchecked text: String, platform: Platform) {
        self.text = text
        self.platform = platform
    }

    /// The handle with all but its last four characters hidden, for logs.
    package var masked: String { "…" + text.suffix(4) }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
            UInt8(ascii: "A")...UInt8(ascii: "F"):
            true
        default: false
        }
    }

    private static func isAbsoluteURI(_ text: String) -> Bool {
        let lower = text.lowercased()
        guard let scheme = ["https://", "http://"].first(where: { lower.hasPrefix($0) }) else { return false }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        guard let first = rest.first, first != UInt8(ascii: "/"), first != UInt8(ascii: "?") else {
            return false
        }
        return rest.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "<")
        }
    }
}

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
    /// Amazon Device Messaging.
    case adm
    /// Baidu Cloud Push.
    case baidu
    /// Web Push (RFC 8030).
    case browser
    /// Mi Push.
    case xiaomi

    /// The value of `ServiceBusNotification-Format` and of `TargetPlatforms`.
    package var format: String {
        switch self {
        case .apns: "apple"
        case .gcm: "gcm"
        case .fcmV1: "fcmv1"
        case .wns: "windows"
        case .mpns: "windowsphone"
        case .adm, .baidu, .browser, .xiaomi: rawValue
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

    /// Reads the names that apps use: `apns`, `ios`, `apple`, `wns`, `windows`, `mpns`, `gcm`, `fcm`, `fcmv1`, `browser`, `webpush`,
    /// `adm`, `amazon`.    /// The Google names that an app uses today mean FCM v1.
    public init?(appName: String) {
        switch appName.lowercased() {
        case "apns", "ios", "apple": self = .apns
        case "gcm", "fcm", "fcmv1", "android": self = .fcmV1
        case "wns", "windows": self = .wns
        case "mpns", "windowsphone": self = .mpns
        case "browser", "webpush": self = .browser
        case "adm", "amazon": self = .adm
        default: return nil
        }
    }

    /// The name that an app uses.
    public var appName: String {
        switch self {
        case .apns: "apns"
        case .gcm, .fcmV1: "fcm"
        case .wns: "wns"
        case .mpns, .adm, .baidu, .browser, .xiaomi: rawValue
        }
    }

    /// The `platform` of an installation: the raw value.
    ///
    /// Reads any case, and `fcm` and `apple`, which some SDKs write.
    package init?(installationName: String) {
        switch installationName.lowercased() {
        case "fcm": self = .gcm
        case "apple": self = .apns
        case let name:
            guard let found = Self.allCases.first(where: { $0.rawValue.lowercased() == name }) else {
                return nil
            }
            self = found
        }
    }

    /// True when payloads and templates are XML, unless they are raw.
    package var usesXML: Bool { self == .wns || self == .mpns }
}

/// The keys of a Web Push subscription (RFC 8291 section 2).
public struct SubscriptionKeys: Hashable, Sendable {
    /// The receiver's public key, base64url.
    public var p256dh: String
    /// The authentication secret, base64url.
    public var auth: String

    /// Keys as the browser gave them.
    public init(p256dh: String, auth: String) {
        self.p256dh = p256dh
        self.auth = auth
    }
}

/// Where one app on one device is reached: an APNs token, an FCM token, a channel URI.
public struct PlatformHandle: Hashable, Sendable {
    /// The service.
    public let platform: Platform
    /// The handle in its stored form: APNs tokens in upper-case hex, `userId-channelId` for Baidu, the endpoint for a browser,
    /// others as given.
    public let text: String
    /// Browsers only.
    public let keys: SubscriptionKeys?

    /// The longest handle in bytes.
    public static let byteCountMax = 2048

    /// Checks the form that the platform demands.
    /// - Throws: ``HubError`` `.badRequest` with what was seen and what is allowed.
    public init(_ text: String, platform: Platform, keys: SubscriptionKeys? = nil) throws(HubError) {
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
        case .gcm, .fcmV1, .adm, .xiaomi:
            guard Self.isVisible(text) else {
                throw HubError(.badRequest, "The registration token holds a character outside visible ASCII.")
            }
            self.text = text
        case .baidu:
            let parts = text.utf8.split(
                separator: UInt8(ascii: "-"),
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            guard Self.isVisible(text), parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
                throw HubError(
                    .badRequest,
                    "The baidu handle is not <userId>-<channelId>: two parts of visible ASCII, the first without '-'."
                )
            }
            self.text = text
        case .browser:
            guard Self.isAbsoluteURI(text) else {
                throw HubError(
                    .badRequest,
                    "The subscription's endpoint is not an absolute http or https URI."
                )
            }
            for (name, key) in [("p256dh", keys?.p256dh), ("auth", keys?.auth)] {
                guard let key, !key.isEmpty, key.utf8.count <= Self.keyByteCountMax, Self.isVisible(key)
                else {
                    throw HubError(
                        .badRequest,
                        "The subscription's '\(name)' is missing, or not 1 to \(Self.keyByteCountMax) characters of base64url."
                    )
                }
            }
            self.text = text
        case .wns, .mpns:
            guard Self.isAbsoluteURI(text) else {
                throw HubError(.badRequest, "The channel is not an absolute http or https URI.")
            }
            self.text = text
        }
        self.platform = platform
        self.keys = platform == .browser ? keys : nil
    }

    /// A handle that was checked before it was stored.
    package init(unchecked text: String, platform: Platform, keys: SubscriptionKeys? = nil) {
        self.text = text
        self.platform = platform
        self.keys = keys
    }

    /// The two ids of a Baidu handle.
    package var baiduIDs: (user: String, channel: String)? {
        guard platform == .baidu, let dash = text.firstIndex(of: "-") else { return nil }
        return (String(text[..<dash]), String(text[text.index(after: dash)...]))
    }

    private static let keyByteCountMax = 256

    private static func isVisible(_ text: String) -> Bool { text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F } }

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

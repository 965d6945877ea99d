import HTTPMessages
import TidingsModels

/// The headers of a request to a channel, checked (Microsoft: "Push notification service request and response headers").
struct WNSHeaders {
    let type: String
    let tag: String?
    let group: String?
    /// Nil: for devices that are connected now.
    let lifetime: Duration?
    let asksForStatus: Bool

    struct Refusal: Error {
        let description: String
    }

    private static let types: Set<String> = ["wns/toast", "wns/tile", "wns/badge", "wns/raw"]
    /// Kept as long as WNS keeps tiles, unless X-WNS-TTL says otherwise.
    private static let lifetimeDefault = Duration.seconds(3 * 86400)
    private static let lifetimeMax = 30 * 86400

    init(_ fields: HTTPFields) throws(Refusal) {
        guard let type = fields["X-WNS-Type"]?.lowercased(), Self.types.contains(type) else {
            throw Refusal(description: "X-WNS-Type must be wns/toast, wns/tile, wns/badge or wns/raw.")
        }
        let media = type == "wns/raw" ? "application/octet-stream" : "text/xml"
        guard fields["Content-Type"]?.lowercased().hasPrefix(media) ?? false else {
            throw Refusal(description: "Content-Type must be \(media) for \(type).")
        }
        self.type = type
        tag = try Self.label(fields, "X-WNS-Tag")
        group = try Self.label(fields, "X-WNS-Group")
        if let text = fields["X-WNS-PRIORITY"], !["1", "2", "3", "4"].contains(text) {
            throw Refusal(description: "X-WNS-PRIORITY must be 1, 2, 3 or 4.")
        }
        asksForStatus = try Self.flag(fields, "X-WNS-RequestForStatus")
        let policy = fields["X-WNS-Cache-Policy"]?.lowercased()
        guard policy == nil || policy == "cache" || policy == "no-cache" else {
            throw Refusal(description: "X-WNS-Cache-Policy must be cache or no-cache.")
        }
        var lifetime: Duration? = Self.lifetimeDefault
        if let text = fields["X-WNS-TTL"] {
            guard let seconds = Int(text), (0...Self.lifetimeMax).contains(seconds) else {
                throw Refusal(description: "X-WNS-TTL must be a number of seconds up to 30 days.")
            }
            lifetime = seconds == 0 ? nil : .seconds(seconds)
        }
        // Raw notifications are not kept unless that is asked for; the policy does not apply to toasts.
        let isKept = type == "wns/raw" ? policy == "cache" : type == "wns/toast" || policy != "no-cache"
        self.lifetime = isKept ? lifetime : nil
    }

    private static func label(_ fields: HTTPFields, _ name: String) throws(Refusal) -> String? {
        guard let text = fields[name] else { return nil }
        guard isLabel(text) else {
            throw Refusal(description: "\(name) must be 1 to 16 letters and digits.")
        }
        return text
    }

    static func isLabel(_ text: String) -> Bool {
        (1...16).contains(text.utf8.count)
            && text.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: false
                }
            }
    }

    private static func flag(_ fields: HTTPFields, _ name: String) throws(Refusal) -> Bool {
        switch fields[name]?.lowercased() {
        case "true": return true
        case "false", nil: return false
        default: throw Refusal(description: "\(name) must be true or false.")
        }
    }
}

/// `X-WNS-Match`: which toasts a DELETE takes back.
struct WNSMatch: Sendable {
    var tag: String?
    var group: String?

    /// `type:wns/toast;group=G;tag=T`, one of the two, or `;all`.
    init?(_ text: String) {
        var parts = ASCII.split(text, at: UInt8(ascii: ";"))
        guard parts.count >= 2, parts.removeFirst().lowercased() == "type:wns/toast" else { return nil }
        if parts == ["all"] { return }
        for part in parts {
            let pair = ASCII.split(part, at: UInt8(ascii: "="), maxSplits: 1)
            guard pair.count == 2, WNSHeaders.isLabel(pair[1]) else { return nil }
            switch pair[0].lowercased() {
            case "tag" where tag == nil: tag = pair[1]
            case "group" where group == nil: group = pair[1]
            default: return nil
            }
        }
    }

    func fits(_ headers: [String: String]) -> Bool {
        headers["X-WNS-Type"] == "wns/toast" && (tag == nil || headers["X-WNS-Tag"] == tag)
            && (group == nil || headers["X-WNS-Group"] == group)
    }
}

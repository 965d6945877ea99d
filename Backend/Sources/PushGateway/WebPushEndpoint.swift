import HTTPMessages
import PushCredentials
import TidingsModels

/// The path of a Web Push subscription: `/wpush/v1/{token}`, or `/wpush/v2/{token}` when only one application server may send to
/// it (RFC 8292 section 4). The token is random; that of a restricted one ends with the hash of the key, so that the address cannot be
/// had for another.
struct WebPushEndpoint: Equatable {
    let text: String
    /// SHA-256 of the key's 65 bytes; nil for a subscription that everybody may send to.
    let keyHash: [UInt8]?

    private static let randomByteCount = 24
    private static let hashByteCount = 32

    static func make(key: [UInt8]?) -> WebPushEndpoint {
        let hash = key.map(Digests.sha256)
        let token = Base64.encodeURL(Digests.random(randomByteCount) + (hash ?? []))
        return WebPushEndpoint(text: "/wpush/\(hash == nil ? "v1" : "v2")/\(token)", keyHash: hash)
    }

    private init(text: String, keyHash: [UInt8]?) {
        self.text = text
        self.keyHash = keyHash
    }

    /// Nil for a path of another form.
    init?(segments: [String]) {
        guard segments.count == 3, segments[0] == "wpush", let token = Base64.decode(segments[2]) else {
            return nil
        }
        let isRestricted = segments[1] == "v2"
        guard isRestricted || segments[1] == "v1",
            token.count == Self.randomByteCount + (isRestricted ? Self.hashByteCount : 0)
        else { return nil }
        self.init(
            text: "/wpush/\(segments[1])/\(Base64.encodeURL(token))",
            keyHash: isRestricted ? Array(token.suffix(Self.hashByteCount)) : nil
        )
    }

    /// Nil for the handle of another platform.
    init?(_ handle: PlatformHandle) {
        guard handle.platform == .browser else { return nil }
        self.init(segments: handle.text.split(separator: "/").map(String.init))
    }

    var handle: PlatformHandle { PlatformHandle(unchecked: text, platform: .browser) }
}

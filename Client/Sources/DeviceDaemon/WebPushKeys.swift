import DeviceLink
import HTTPMessages
import HubAPI
import JSONBytes
import PushCredentials
import TidingsModels

/// The receiver's side of Web Push (RFC 8291): a key pair and a secret, whose public half is part of the device's handle.
struct WebPushKeys: Equatable, Sendable {
    let pair: P256KeyPair
    let auth: [UInt8]

    static func make() throws(CredentialError) -> WebPushKeys {
        WebPushKeys(pair: try .generate(), auth: Digests.random(WebPushMessage.authByteCount))
    }

    private init(pair: P256KeyPair, auth: [UInt8]) {
        self.pair = pair
        self.auth = auth
    }

    /// Nil for anything that ``json`` did not write.
    init?(_ json: JSONValue) {
        guard let scalar = json["privateKey"]?.stringValue.flatMap({ Base64.decode($0) }),
            let auth = json["auth"]?.stringValue.flatMap({ Base64.decode($0) }),
            auth.count == WebPushMessage.authByteCount, let pair = try? P256KeyPair(scalar: scalar)
        else { return nil }
        self.init(pair: pair, auth: auth)
    }

    var json: JSONValue {
        .object([
            "privateKey": .string(Base64.encodeURL(pair.scalar)), "auth": .string(Base64.encodeURL(auth)),
        ])
    }

    /// The handle of an endpoint: the subscription as JSON text.
    func handle(_ endpoint: String) -> String {
        let keys = SubscriptionKeys(
            p256dh: Base64.encodeURL(pair.point),
            auth: Base64.encodeURL(auth)
        )
        let handle = PlatformHandle(unchecked: endpoint, platform: .browser, keys: keys)
        return SubscriptionJSON.value(handle)?.text ?? endpoint
    }

    /// The message as its sender wrote it.
    /// - Throws: ``WebPushMessage/Failure`` when it was not encrypted for these keys.
    func open(_ notification: DeviceNotification) throws(WebPushMessage.Failure) -> DeviceNotification {
        var opened = notification
        opened.platform = .browser
        guard !notification.data.isEmpty else { return opened }
        switch notification.header("encoding") {
        case "aesgcm":
            let salt = notification.header("encryption").flatMap { VAPID.Parameters($0)["salt"] }
            let sender = notification.header("crypto_key").flatMap { VAPID.Parameters($0)["dh"] }
            opened.data = try WebPushMessage.decryptLegacy(
                notification.data,
                with: pair,
                auth: auth,
                salt: salt.flatMap { Base64.decode($0) } ?? [],
                sender: sender.flatMap { Base64.decode($0) } ?? []
            )
        default: opened.data = try WebPushMessage.decrypt(notification.data, with: pair, auth: auth)
        }
        return opened
    }
}

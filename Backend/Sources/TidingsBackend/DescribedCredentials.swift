import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// The credentials of a hub's description, as the senders take them (protocol reference, section 9.2). Nil where none are
/// described.
struct DescribedCredentials {
    let hub: HubDescription

    init(_ hub: HubDescription) { self.hub = hub }

    /// The environment is told by the endpoint; .NET names a certificate gateway also in token mode.
    func apns() throws -> APNsSettings? {
        guard let values = hub.credentials[.apns] else { return nil }
        let endpoint = try Self.appleEndpoint(values["Endpoint"] ?? "")
        if let identity = try identity(.apns, "ApnsCertificate") {
            guard identity.userID != nil else {
                throw ConfigurationError("the apns credential's ApnsCertificate names no bundle id (UID)")
            }
            return APNsSettings(endpoint: endpoint, credential: .certificate(identity), topic: nil)
        }
        guard let token = values["Token"], !token.isEmpty else { return nil }
        let key = Self.pem(token)
        do throws(CredentialError) { _ = try SigningKey.privateKey(key) } catch {
            throw ConfigurationError("the apns credential's Token is no private key: \(error)")
        }
        return APNsSettings(
            endpoint: endpoint,
            credential: .token(
                keyID: values["KeyId"] ?? "",
                teamID: values["AppId"] ?? "",
                privateKey: key
            ),
            topic: values["AppName"] ?? ""
        )
    }

    /// Base64 of a PKCS#12 file, with its password in `CertificateKey`; nil when there is none.
    func identity(_ platform: Platform, _ name: String) throws -> ClientIdentity? {
        guard let values = hub.credentials[platform], let text = values[name], !text.isEmpty else {
            return nil
        }
        let place = "the \(platform.rawValue) credential's \(name)"
        guard let bytes = Base64.decode(String(text.filter { !$0.isWhitespace })) else {
            throw ConfigurationError("\(place) is not base64")
        }
        let identity: ClientIdentity
        do throws(CredentialError) {
            identity = try ClientIdentity(bytes, password: values["CertificateKey"] ?? "")
        } catch { throw ConfigurationError("\(place) cannot be used: \(error)") }
        return identity
    }

    private static func appleEndpoint(_ text: String) throws -> HTTPURL {
        let lower = text.lowercased()
        let isApple = text.isEmpty || !lower.contains("/") || lower.contains(".push.apple.com")
        let isSandbox = lower.contains("sandbox") || lower.contains("development")
        let address = isApple ? "https://api.\(isSandbox ? "development." : "")push.apple.com" : text
        guard let url = HTTPURL(address), let origin = HTTPURL(url.origin) else {
            throw ConfigurationError("the apns credential's Endpoint '\(text)' is not an address")
        }
        return origin
    }

    /// The text of a key, with its header lines and real line ends.
    private static func pem(_ text: String) -> String {
        let text = text.replacing("\\n", with: "\n")
        if text.contains("-----BEGIN") { return String(text) }
        return "-----BEGIN PRIVATE KEY-----\n\(text)\n-----END PRIVATE KEY-----\n"
    }

    func fcmV1() throws -> FCMv1Settings? {
        guard let values = hub.credentials[.fcmV1], let key = values["PrivateKey"], !key.isEmpty else {
            return nil
        }
        let pem = Self.pem(key)
        let account = JSONValue.object([
            "project_id": .string(values["ProjectId"] ?? ""),
            "client_email": .string(values["ClientEmail"] ?? ""),
            "private_key": .string(pem),
            // Equal names are equal keys.
            "private_key_id": .string(Hex.encode(Digests.sha256(Array(pem.utf8)))),
            "token_uri": .string(values["TokenUrl"] ?? "https://oauth2.googleapis.com/token"),
        ])
        let text = values["Endpoint"] ?? "https://fcm.googleapis.com"
        guard let endpoint = HTTPURL(text) else {
            throw ConfigurationError("the fcmV1 credential's Endpoint '\(text)' is not an address")
        }
        do throws(FCMv1Settings.Failure) {
            return try FCMv1Settings(
                serviceAccount: account.serialized(),
                endpoint: endpoint,
                sendsDeliveryID: endpoint.host != "fcm.googleapis.com"
            )
        } catch {
            throw ConfigurationError("the fcmV1 credential cannot be used: \(error)")
        }
    }

    /// With Entra's token endpoint in `WindowsLiveEndpoint`, `PackageSid` and `SecretKey` are the application's id and secret.
    func wns() throws -> WNSSettings? {
        guard let values = hub.credentials[.wns], let secret = values["SecretKey"], !secret.isEmpty else {
            return nil
        }
        let text = values["WindowsLiveEndpoint"] ?? "https://login.live.com/accesstoken.srf"
        guard let tokenURL = HTTPURL(text) else {
            throw ConfigurationError("the wns credential's WindowsLiveEndpoint '\(text)' is not an address")
        }
        let isOwn = !WNSSettings.isMicrosofts(tokenURL)
        return WNSSettings(
            packageSID: values["PackageSid"] ?? "",
            secretKey: secret,
            tokenURL: tokenURL,
            gatewayOrigins: isOwn ? [tokenURL.origin] : [],
            sendsDeliveryID: isOwn
        )
    }

    func webPush() throws -> WebPushSettings? {
        guard let values = hub.credentials[.browser], let key = values["VapidPrivateKey"], !key.isEmpty else {
            return nil
        }
        do throws(WebPushSettings.Failure) {
            return try WebPushSettings(
                subject: values["Subject"] ?? "",
                publicKey: values["VapidPublicKey"],
                privateKey: key
            )
        } catch { throw ConfigurationError("the browser credential cannot be used: \(error)") }
    }
}

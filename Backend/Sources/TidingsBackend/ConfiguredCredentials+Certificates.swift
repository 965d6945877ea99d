import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import PushCredentials

/// The services that know a provider by a certificate.
extension SettingsReader {
    func apns() throws -> APNsSettings {
        let endpoint = try url("endpoint", default: "https://api.push.apple.com")
        if let identity = try identity() {
            for name in ["keyId", "teamId", "keyFile"] where object[name] != nil {
                throw ConfigurationError(
                    "\(place): 'certificateFile' and '\(name)' exclude each other: give a certificate or a token's key"
                )
            }
            let topic = object["bundleId"]?.stringValue
            guard topic ?? identity.userID != nil else {
                throw ConfigurationError(
                    "\(place): the certificate's subject names no bundle id (UID), so 'bundleId' is needed"
                )
            }
            return APNsSettings(endpoint: endpoint, credential: .certificate(identity), topic: topic)
        }
        return APNsSettings(
            endpoint: endpoint,
            credential: .token(
                keyID: try text("keyId"),
                teamID: try text("teamId"),
                privateKey: String(decoding: try file("keyFile"), as: UTF8.self)
            ),
            topic: try text("bundleId")
        )
    }

    func mpns() throws -> MPNSSettings {
        MPNSSettings(gatewayOrigins: try origins("gatewayOrigins"), identity: try identity())
    }

    /// `certificateFile`, PEM with its key or PKCS#12, and the file with its password; nil without one.
    private func identity() throws -> ClientIdentity? {
        guard object["certificateFile"] != nil else {
            guard object["certificatePasswordFile"] == nil else {
                throw ConfigurationError("\(place): 'certificatePasswordFile' without 'certificateFile'")
            }
            return nil
        }
        var password = ""
        if object["certificatePasswordFile"] != nil {
            password = ASCII.trimmed(
                String(decoding: try file("certificatePasswordFile"), as: UTF8.self)[...]
            )
        }
        let bytes = try file("certificateFile")
        do throws(CredentialError) { return try ClientIdentity(bytes, password: password) } catch {
            throw ConfigurationError("\(place): 'certificateFile' cannot be used: \(error)")
        }
    }
}

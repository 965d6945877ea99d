package import HTTPMessages
import JSONBytes
package import PushCredentials

/// A hub's credentials at Google: a service account.
package struct FCMv1Settings: Sendable, Equatable {
    /// `https://fcm.googleapis.com`, or a gateway.
    package var endpoint: HTTPURL
    package var projectID: String
    package var clientEmail: String
    package var privateKeyID: String
    package var privateKey: SigningKey
    package var tokenURL: HTTPURL
    /// True towards our own gateway, which drops repeats by it.
    package var sendsDeliveryID: Bool

    /// Google names each key, so that equal names are equal keys.
    package static func == (left: FCMv1Settings, right: FCMv1Settings) -> Bool {
        left.endpoint == right.endpoint && left.projectID == right.projectID
            && left.clientEmail == right.clientEmail && left.privateKeyID == right.privateKeyID
            && left.tokenURL == right.tokenURL && left.sendsDeliveryID == right.sendsDeliveryID
    }

    /// Why a service-account file cannot be used.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Reads a service-account file.
    package init(
        serviceAccount bytes: [UInt8],
        endpoint: HTTPURL,
        sendsDeliveryID: Bool = false
    ) throws(Failure) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: bytes) } catch {
            throw Failure(description: "The service-account file is not JSON: \(error)")
        }
        func member(_ name: String) throws(Failure) -> String {
            guard let text = json[name]?.stringValue, !text.isEmpty else {
                throw Failure(description: "The service-account file has no member '\(name)'")
            }
            return text
        }
        guard let tokenURL = HTTPURL(try member("token_uri")) else {
            throw Failure(description: "token_uri of the service-account file is not an http or https URL")
        }
        self.endpoint = endpoint
        projectID = try member("project_id")
        clientEmail = try member("client_email")
        privateKeyID = json["private_key_id"]?.stringValue ?? ""
        let pem = try member("private_key")
        do throws(CredentialError) { privateKey = try SigningKey.privateKey(pem) } catch {
            throw Failure(description: "private_key of the service-account file: \(error)")
        }
        self.tokenURL = tokenURL
        self.sendsDeliveryID = sendsDeliveryID
    }
}

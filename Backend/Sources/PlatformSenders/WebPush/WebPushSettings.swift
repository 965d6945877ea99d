import HTTPMessages
import PushCredentials

/// A hub's identity towards push services (RFC 8292), and which of them it may reach.
package struct WebPushSettings: Sendable, Equatable {
    /// `mailto:` or `https:`, for a push service's people.
    package let subject: String
    let keyPair: P256KeyPair
    /// Gateways that are reached without https or at a private address.
    package let gatewayOrigins: Set<String>
    /// True: one ephemeral key for each send instead of each message. Up to a third less work; whoever holds two messages of a send
    /// sees that they belong together.
    package let usesOneKeyPerSend: Bool

    /// A key that cannot be used.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// - Parameters:
    ///   - publicKey: Base64url, 65 bytes; nil takes the one that belongs to `privateKey`.
    ///   - privateKey: Base64url, 32 bytes.
    package init(
        subject: String,
        publicKey: String?,
        privateKey: String,
        gatewayOrigins: Set<String> = [],
        usesOneKeyPerSend: Bool = false
    ) throws(Failure) {
        guard subject.hasPrefix("mailto:") || subject.hasPrefix("https:") else {
            throw Failure(
                description: "the VAPID subject '\(subject)' begins neither with mailto: nor with https:"
            )
        }
        guard let scalar = Base64.decode(privateKey), let pair = try? P256KeyPair(scalar: scalar) else {
            throw Failure(description: "the VAPID private key is not 32 bytes in base64url")
        }
        guard publicKey.map({ Base64.decode($0) == pair.point }) ?? true else {
            throw Failure(description: "the VAPID public key does not belong to the private key")
        }
        self.subject = subject
        keyPair = pair
        self.gatewayOrigins = gatewayOrigins
        self.usesOneKeyPerSend = usesOneKeyPerSend
    }

    /// The key that a subscription is restricted to, base64url.
    package var publicKey: String { Base64.encodeURL(keyPair.point) }

    /// Endpoints come from clients: they are reached over https at public addresses, or at a gateway that the operator named.
    func mayReach(_ endpoint: HTTPURL) -> Bool {
        gatewayOrigins.contains(endpoint.origin) || endpoint.scheme == "https"
    }
}

package import HTTPMessages
package import PushCredentials

/// A hub's credentials at Apple.
package struct APNsSettings: Sendable, Equatable {
    /// How the hub proves who it is; never both, since nobody knows which one Apple prefers.
    package enum Credential: Sendable, Equatable {
        /// The `.p8` text, with or without its header lines.
        case token(keyID: String, teamID: String, privateKey: String)
        case certificate(ClientIdentity)
    }

    /// `https://api.push.apple.com`, the sandbox, or a gateway.
    package var endpoint: HTTPURL
    package var credential: Credential
    /// The bundle id: the topic of a notification without `apns-topic`. Nil lets the certificate's user id decide.
    package var topic: String?

    /// Apple is told nothing about our traces.
    var isOwnGateway: Bool { !endpoint.host.hasSuffix(".push.apple.com") }

    package init(endpoint: HTTPURL, credential: Credential, topic: String?) {
        self.endpoint = endpoint
        self.credential = credential
        self.topic = topic
    }
}

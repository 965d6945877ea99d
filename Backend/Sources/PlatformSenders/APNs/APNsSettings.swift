package import HTTPMessages

/// A hub's credentials at Apple, token mode.
package struct APNsSettings: Sendable, Equatable {
    /// `https://api.push.apple.com`, the sandbox, or a gateway.
    package var endpoint: HTTPURL
    package var keyID: String
    package var teamID: String
    /// The bundle id: the topic of a notification without `apns-topic`.
    package var bundleID: String
    /// The `.p8` text, with or without its header lines.
    package var privateKey: String

    /// Apple is told nothing about our traces.
    var isOwnGateway: Bool { !endpoint.host.hasSuffix(".push.apple.com") }

    package init(endpoint: HTTPURL, keyID: String, teamID: String, bundleID: String, privateKey: String) {
        self.endpoint = endpoint
        self.keyID = keyID
        self.teamID = teamID
        self.bundleID = bundleID
        self.privateKey = privateKey
    }
}

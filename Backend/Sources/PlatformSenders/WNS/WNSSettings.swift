package import HTTPMessages
import HubCore
import TidingsModels

/// A hub's credentials at Microsoft.
package struct WNSSettings: Sendable, Equatable {
    /// `ms-app://…`, or an Entra application id.
    package var packageSID: String
    package var secretKey: String
    package var tokenURL: HTTPURL
    /// `notify.windows.com`, or `https://wns.windows.com/.default` with Entra.
    package var scope: String
    /// Gateways besides Microsoft's own domain that may get the access token.
    package var gatewayOrigins: Set<String>
    /// True towards our own gateway, which drops repeats by it.
    package var sendsDeliveryID: Bool

    package init(
        packageSID: String,
        secretKey: String,
        tokenURL: HTTPURL,
        scope: String = "notify.windows.com",
        gatewayOrigins: Set<String> = [],
        sendsDeliveryID: Bool = false
    ) {
        self.packageSID = packageSID
        self.secretKey = secretKey
        self.tokenURL = tokenURL
        self.scope = scope
        self.gatewayOrigins = gatewayOrigins
        self.sendsDeliveryID = sendsDeliveryID
    }

    /// Channel URIs come from clients: a token goes only to Microsoft's domain over https, or to a gateway that the
    /// operator named.
    package func mayReceiveToken(_ channel: HTTPURL) -> Bool {
        gatewayOrigins.contains(channel.origin) || ChannelRules.isPlatformsOwn(channel, .wns)
    }
}

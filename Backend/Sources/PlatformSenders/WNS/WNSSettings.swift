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
        scope: String? = nil,
        gatewayOrigins: Set<String> = [],
        sendsDeliveryID: Bool = false
    ) {
        self.packageSID = packageSID
        self.secretKey = secretKey
        self.tokenURL = tokenURL
        self.scope = scope ?? Self.scope(at: tokenURL)
        self.gatewayOrigins = gatewayOrigins
        self.sendsDeliveryID = sendsDeliveryID
    }

    /// Windows Live's token service, or Entra's (`/{tenant}/oauth2/v2.0/token`), each has its own.
    private static func scope(at tokenURL: HTTPURL) -> String {
        tokenURL.description.hasSuffix("/oauth2/v2.0/token")
            ? "https://wns.windows.com/.default" : "notify.windows.com"
    }

    /// Whether a token service is Microsoft's own: Windows Live's, or Entra's of any of its clouds.
    package static func isMicrosofts(_ tokenURL: HTTPURL) -> Bool {
        [
            "login.live.com", "login.microsoftonline.com", "login.microsoftonline.us",
            "login.partner.microsoftonline.cn", "login.chinacloudapi.cn",
        ].contains(tokenURL.host)
    }

    /// Channel URIs come from clients: a token goes only to Microsoft's domain over https, or to a gateway that the
    /// operator named.
    package func mayReceiveToken(_ channel: HTTPURL) -> Bool {
        gatewayOrigins.contains(channel.origin) || ChannelRules.isPlatformsOwn(channel, .wns)
    }
}

package import HTTPMessages
import HubCore
package import PushCredentials
import TidingsModels

/// How a hub reaches Windows phones. Unauthenticated channels need no credentials: whoever knows a channel may send to it,
/// 500 times a day. Authenticated ones, which have no such limit, ask for the certificate that the app named when it opened them.
package struct MPNSSettings: Sendable, Equatable {
    /// Gateways besides Microsoft's own domain that a channel may lead to; they are told the delivery id and the trace.
    package var gatewayOrigins: Set<String>
    /// Shown to every service that asks for one.
    package var identity: ClientIdentity?

    package init(gatewayOrigins: Set<String> = [], identity: ClientIdentity? = nil) {
        self.gatewayOrigins = gatewayOrigins
        self.identity = identity
    }

    /// Channel URIs come from clients, and a send follows them from inside the operator's network: only to Microsoft's domain, or
    /// to a gateway that the operator named.
    package func mayReach(_ channel: HTTPURL) -> Bool {
        gatewayOrigins.contains(channel.origin) || ChannelRules.isPlatformsOwn(channel, .mpns)
    }
}

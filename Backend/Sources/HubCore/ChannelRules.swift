package import HTTPMessages
package import TidingsModels

/// Which channels a registration may name.
package enum ChannelMode: String, Sendable, CaseIterable {
    /// Addresses of the platform itself, and of gateways that the operator named.
    case strict
    /// Every absolute address, as at the original. A sender still asks before it attaches a token.
    case original
}

/// Whether a channel leads to its platform. A client chooses it, and a send follows it from inside the operator's network, for
/// Windows with the hub's access token.
package struct ChannelRules: Sendable {
    package let mode: ChannelMode
    /// They know the gateways that the operator named.
    private let senders: SenderDirectory

    package init(_ mode: ChannelMode, _ senders: SenderDirectory) {
        self.mode = mode
        self.senders = senders
    }

    /// - Throws: ``HubError`` `.badRequest` with the channel's host and what is allowed.
    package func check(_ handle: PlatformHandle) throws(HubError) {
        guard mode == .strict, [.wns, .mpns, .browser].contains(handle.platform) else { return }
        let gateways = senders[handle.platform]?.gatewayOrigins ?? []
        guard let channel = HTTPURL(handle.text) else {
            throw HubError(.badRequest, "The \(handle.platform.format) channel is not an http or https URL.")
        }
        if gateways.contains(channel.origin) || Self.isPlatformsOwn(channel, handle.platform) { return }
        throw HubError(
            .badRequest,
            "The \(handle.platform.format) channel leads to \(channel.origin); allowed are \(Self.allowed(handle.platform)), "
                + "and the gateways that the hub's settings name (hub.channels: strict)."
        )
    }

    /// True for an address at the platform's own servers. For Web Push, whose servers are anybody's: a name in the public DNS; the
    /// sender looks at the addresses that it stands for.
    package static func isPlatformsOwn(_ channel: HTTPURL, _ platform: Platform) -> Bool {
        switch platform {
        case .wns:
            channel.scheme == "https" && channel.port == 443
                && isBelow(channel.host, "notify.windows.com")
        case .mpns:
            channel.port == (channel.scheme == "https" ? 443 : 80) && isBelow(channel.host, "notify.live.net")
        case .browser:
            channel.scheme == "https" && isPublicName(channel.host)
        default: true
        }
    }

    private static func allowed(_ platform: Platform) -> String {
        switch platform {
        case .wns: "https addresses below notify.windows.com"
        case .mpns: "addresses below notify.live.net"
        default: "https addresses with a name in the public DNS"
        }
    }

    private static func isBelow(_ host: String, _ domain: String) -> Bool {
        host == domain || host.hasSuffix("." + domain)
    }

    /// No address in any spelling: the last label of a name begins with a letter (RFC 3696 section 2).
    private static func isPublicName(_ host: String) -> Bool {
        let labels = ASCII.split(host, at: UInt8(ascii: "."))
        guard labels.count > 1, let last = labels.last, last != "localhost", last != "local" else {
            return false
        }
        return last.utf8.first.map { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) } ?? false
    }
}

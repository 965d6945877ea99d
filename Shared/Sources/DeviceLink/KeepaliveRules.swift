/// How long a gateway waits for a device (push services reference, sections 6.1 and 6.5). Tests wait less.
package struct GatewayLinkTimes: Sendable {
    /// From the upgrade to `hello`.
    package var hello = Duration.seconds(5)
    /// Application pings faster than this close the connection. Firefox pings every 30 minutes.
    package var pingIntervalMin = Duration.seconds(45)
    /// A device that was quiet for so long gets a WebSocket ping.
    package var quiet = Duration.seconds(300)
    /// From the ping to a sign of life.
    package var pong = Duration.seconds(4)

    package init() {}
}

/// When a gateway pings a device, and when it gives the device up. No socket, no clock.
///
/// One timer serves a connection: what arrives only notes when it was.
package struct KeepaliveRules: Sendable {
    package enum Action: Equatable, Sendable {
        /// Ask again after so long.
        case wait(Duration)
        /// Ping, and ask again after so long.
        case ping(Duration)
        case giveUp
    }

    private var quietSince: Duration
    private var isPinged = false

    /// - Parameter now: Any monotonic time; so below.
    package init(now: Duration) { quietSince = now }

    /// Anything from the device is a sign of life, not its pong alone.
    package mutating func received(now: Duration) {
        quietSince = now
        isPinged = false
    }

    /// A broadcast goes out in place of a ping, and asks for no pong; one that was asked for is still due.
    package mutating func sentBroadcast(now: Duration) { quietSince = now }

    /// What is due. First asked when the rules are made.
    package mutating func due(now: Duration, _ times: GatewayLinkTimes) -> Action {
        if isPinged { return .giveUp }
        let rest = quietSince + times.quiet - now
        if rest > .zero { return .wait(rest) }
        isPinged = true
        return .ping(times.pong)
    }
}

package import TidingsModels

/// What a device may do next on its connection: the gateway's side. No socket, no clock.
package struct GatewayLinkRules: Sendable {
    /// Application pings faster than this close the connection. Firefox pings every 30 minutes.
    package static let pingIntervalMin = Duration.seconds(45)
    /// From the upgrade to `hello`.
    package static let helloTimeout = Duration.seconds(5)

    package enum Action: Equatable, Sendable {
        /// Identify the device; nil or an unusable id asks for a new one.
        case identify(uaid: String?)
        case register(channelID: String, key: String?, Platform?)
        case unregister(channelID: String)
        case acknowledge([DeviceFrame.Ack])
        case count(nackCode: Int)
        case pong
        case nothing
    }

    private var isIdentified = false
    private var lastPing: Duration?

    package init() {}

    /// - Parameter now: Any monotonic time.
    package mutating func received(_ frame: DeviceFrame, now: Duration) throws(LinkViolation) -> Action {
        if case .hello(let uaid) = frame {
            guard !isIdentified else { throw LinkViolation.state("a second hello") }
            isIdentified = true
            return .identify(uaid: uaid.flatMap(Self.normalized))
        }
        guard isIdentified else { throw LinkViolation.state("the first frame must be hello") }
        switch frame {
        case .hello: return .nothing
        case .register(let channelID, let key, let platform):
            return .register(channelID: channelID, key: key, platform)
        case .unregister(let channelID, _): return .unregister(channelID: channelID)
        case .ack(let acks): return .acknowledge(acks)
        case .nack(_, let code): return .count(nackCode: code)
        case .broadcastSubscribe: return .nothing
        case .ping:
            if let lastPing, now - lastPing < Self.pingIntervalMin {
                throw LinkViolation.state("pings follow each other too fast")
            }
            lastPing = now
            return .pong
        }
    }

    /// 32 lower-case hex digits; nil for anything that is not a UUID.
    private static func normalized(_ uaid: String) -> String? {
        let digits = uaid.lowercased().filter { $0 != "-" }
        return digits.utf8.count == 32 && digits.utf8.allSatisfy(LinkJSON.isLowerHex) ? digits : nil
    }
}

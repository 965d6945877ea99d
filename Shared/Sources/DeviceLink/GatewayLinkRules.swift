package import TidingsModels

/// What a device may do next on its connection: the gateway's side. No socket, no clock.
package struct GatewayLinkRules: Sendable {
    package enum Action: Equatable, Sendable {
        /// Identify the device; nil or an unusable id asks for a new one.
        case identify(uaid: String?, broadcasts: [BroadcastID: String])
        case register(channelID: String, key: String?, Platform?)
        case unregister(channelID: String)
        case acknowledge([DeviceFrame.Ack])
        case count(nackCode: Int)
        case subscribe([BroadcastID: String])
        case pong
    }

    private let pingIntervalMin: Duration
    private var isIdentified = false
    private var lastPing: Duration?

    package init(_ times: GatewayLinkTimes = GatewayLinkTimes()) { pingIntervalMin = times.pingIntervalMin }

    /// - Parameter now: Any monotonic time.
    package mutating func received(_ frame: DeviceFrame, now: Duration) throws(LinkViolation) -> Action {
        guard isIdentified else {
            guard case .hello(let uaid, let broadcasts) = frame else {
                throw LinkViolation.state("the first frame must be hello")
            }
            isIdentified = true
            return .identify(uaid: uaid.flatMap(Self.normalized), broadcasts: broadcasts)
        }
        switch frame {
        case .hello: throw LinkViolation.state("a second hello")
        case .register(let channelID, let key, let platform):
            return .register(channelID: channelID, key: key, platform)
        case .unregister(let channelID, _): return .unregister(channelID: channelID)
        case .ack(let acks): return .acknowledge(acks)
        case .nack(_, let code): return .count(nackCode: code)
        case .broadcastSubscribe(let broadcasts): return .subscribe(broadcasts)
        case .ping:
            if let lastPing, now - lastPing < pingIntervalMin {
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

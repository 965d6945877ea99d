import DeviceLink
import GatewayConnection
package import HTTPMessages
import Synchronization
package import TidingsModels

/// A device on a raw link that comes and goes. It keeps its id and its channel, acknowledges what it gets, and drops what it has.
package final class RawDevice: Sendable {
    private struct State {
        var uaid: String?
        var handle: String?
        var waiter: CheckedContinuation<String, Never>?
        var receivedCount = 0
        var receivedWaiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
        var repeatCount = 0
        /// The last message ids: a repeat is among those that were not acknowledged, of which there are 100.
        var recent: [String] = []
        var connection: GatewayConnection?
        var pump: Task<Void, Never>?
    }

    package let platform: Platform
    private let gateway: HTTPURL
    private let channelID: String
    private let state = Mutex(State())

    /// - Parameter platform: Nil takes the platforms in turn.
    package init(_ index: Int, _ platform: Platform? = nil, gateway: HTTPURL) {
        self.gateway = gateway
        self.platform = platform ?? TemplateTargets.platforms[index % TemplateTargets.platforms.count]
        let digits = String(index, radix: 16)
        channelID = "00000000-0000-4000-8000-\(String(repeating: "0", count: 12 - digits.count))\(digits)"
    }

    package var uaid: String? { state.withLock { $0.uaid } }
    package var receivedCount: Int { state.withLock { $0.receivedCount } }
    package var repeatCount: Int { state.withLock { $0.repeatCount } }
    package var isOnline: Bool { state.withLock { $0.connection != nil } }

    /// Dials; does nothing when it is online.
    package func connect() {
        let connection = state.withLock { state -> GatewayConnection? in
            guard state.connection == nil else { return nil }
            let made = GatewayConnection(url: gateway, tls: nil, uaid: state.uaid, jitter: { 0.5 })
            state.connection = made
            return made
        }
        guard let connection else { return }
        // Ends when the connection is stopped.
        let pump = Task {
            for await event in connection.events {
                switch event {
                case .connected(let uaid): state.withLock { $0.uaid = uaid }
                case .registered(_, let handle): take(handle)
                case .notification(let notification):
                    take(notification)
                    connection.acknowledge([.init(channelID: channelID, version: notification.version)])
                default: break
                }
            }
        }
        state.withLock { $0.pump = pump }
        connection.start()
        if state.withLock({ $0.handle }) == nil {
            connection.register(channelID: channelID, platform: platform)
        }
    }

    private func take(_ handle: String) {
        let waiter = state.withLock { state in
            state.handle = handle
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: handle)
    }

    private func take(_ notification: DeviceNotification) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.recent.contains(notification.version) else {
                state.repeatCount += 1
                return nil
            }
            state.recent.append(notification.version)
            if state.recent.count > 400 { state.recent.removeFirst(200) }
            state.receivedCount += 1
            guard let waiter = state.receivedWaiter, state.receivedCount >= waiter.count else { return nil }
            state.receivedWaiter = nil
            return waiter.continuation
        }
        waiter?.resume()
    }

    /// Returns once so many different messages have come; for one who waits.
    package func received(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.receivedCount >= count { return true }
                state.receivedWaiter = (count, continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    package func handle() async -> String {
        await withCheckedContinuation { continuation in
            let known = state.withLock { state in
                if state.handle == nil { state.waiter = continuation }
                return state.handle
            }
            if let known { continuation.resume(returning: known) }
        }
    }

    package func disconnect() async {
        let (connection, pump) = state.withLock { state in
            defer { (state.connection, state.pump) = (nil, nil) }
            return (state.connection, state.pump)
        }
        connection?.stop()
        await pump?.value
    }
}

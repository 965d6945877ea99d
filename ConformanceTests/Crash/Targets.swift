import DeviceDaemon
import DeviceLink
import GatewayConnection
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import Synchronization
import TidingsConformance
import TidingsModels

/// A connection with many channels, each a target of its own; it acknowledges what it has recorded.
final class Link: Sendable {
    private let connection: GatewayConnection
    private let pump: Task<Void, Never>
    private final class Handles: Sendable {
        let known = Mutex<[String: (handle: String, platform: Platform)]>([:])
    }
    private let handles = Handles()
    private let isComplete: AsyncStream<Void>

    init(_ gateway: HTTPURL, index: Int, channelCount: Int, tally: Tally) {
        let connection = GatewayConnection(url: gateway, tls: nil, uaid: nil, jitter: { 0.5 })
        self.connection = connection
        var platforms: [String: Platform] = [:]
        for channel in 0..<channelCount {
            let id = "\(hex(index, 8))-0000-4000-8000-\(hex(channel, 12))"
            platforms[id] = TemplateTargets.platforms[channel % TemplateTargets.platforms.count]
        }
        let (complete, end) = AsyncStream.makeStream(of: Void.self)
        isComplete = complete
        let handles = handles
        let wanted = platforms
        // Ends when the connection is stopped.
        pump = Task {
            var seen = Set<String>()
            for await event in connection.events {
                switch event {
                case .registered(let id, let handle):
                    let isLast = handles.known.withLock { known in
                        known[id] = (handle, wanted[id] ?? .apns)
                        return known.count == wanted.count
                    }
                    if isLast { end.finish() }
                case .notification(let notification):
                    if seen.insert(notification.version).inserted {
                        tally.record(notification.channelID, text(notification))
                    } else {
                        tally.recordRepeat()
                    }
                    connection.acknowledge([
                        .init(channelID: notification.channelID, version: notification.version)
                    ])
                default: break
                }
            }
        }
        connection.start()
        for (id, platform) in platforms { connection.register(channelID: id, platform: platform) }
    }

    /// The handles, once all are there.
    func ready() async -> [(handle: String, platform: Platform)] {
        for await _ in isComplete {}
        return handles.known.withLock { Array($0.values) }
    }

    func stop() async {
        connection.stop()
        await pump.value
    }
}

private func hex(_ value: Int, _ digits: Int) -> String {
    let text = String(value, radix: 16)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
}

/// The text that a push carries, whatever its platform.
private func text(_ notification: DeviceNotification) -> String {
    let data = String(decoding: notification.data, as: UTF8.self)
    guard let start = data.firstRange(of: "round ") else { return data }
    return String(data[start.lowerBound...].prefix { $0 != "\"" && $0 != "<" })
}

/// A real daemon of this process.
final class Daemon: Sendable {
    let name: String
    private let configuration: DaemonConfiguration
    private let tally: Tally
    private let running = Mutex<(daemon: DeviceDaemon, pump: Task<Void, Never>)?>(nil)
    private let log = Log("device", to: .inMemory())

    init(_ name: String, _ platform: Platform, folder: String, gateway: HTTPURL, tally: Tally) {
        self.name = name
        self.tally = tally
        configuration = DaemonConfiguration(
            platform: platform,
            statePath: folder + "/" + name,
            gateway: gateway,
            backend: nil,
            hub: nil,
            hubName: ServiceProcesses.hubName
        )
    }

    var platform: Platform { configuration.platform }

    /// Starts it; returns its handle.
    @discardableResult
    func start() async throws -> String {
        let daemon = try DeviceDaemon(configuration, time: SystemTimeSource(), log: log)
        let events = await daemon.events()
        let (name, tally) = (name, tally)
        // Ends when the daemon stops.
        let pump = Task {
            for await event in events {
                if let text = event["text"] { tally.record(name, text) }
            }
        }
        running.withLock { $0 = (daemon, pump) }
        try await daemon.start()
        return try await daemon.currentHandleForTests()
    }

    func stop() async {
        let current = running.withLock { running in
            defer { running = nil }
            return running
        }
        await current?.daemon.stop()
        await current?.pump.value
    }
}

public import DeviceDaemon
import HTTPMessages
import HubClient
package import JSONBytes
import PushTelemetry
import Synchronization
public import TidingsModels

/// A device of a World: a real daemon with a state folder of its own.
public final class WorldDevice: Sendable {
    /// Its name in the World.
    public let name: String
    /// The platform that it stands for.
    public let platform: Platform
    package let configuration: DaemonConfiguration
    private let clock: WorldClock
    private let current: Mutex<(daemon: DeviceDaemon, events: EventLog, pump: Task<Void, Never>)?> = Mutex(
        nil
    )

    init(name: String, configuration: DaemonConfiguration, clock: WorldClock) {
        self.name = name
        platform = configuration.platform
        self.configuration = configuration
        self.clock = clock
    }

    package var daemon: DeviceDaemon {
        get throws {
            guard let daemon = current.withLock({ $0?.daemon }) else {
                throw WorldFailure("the device \(name) is not running")
            }
            return daemon
        }
    }

    package var events: EventLog {
        get throws {
            guard let events = current.withLock({ $0?.events }) else {
                throw WorldFailure("the device \(name) is not running")
            }
            return events
        }
    }

    /// Starts the daemon and waits until it is connected.
    package func start(_ log: DeviceLog, waits: Bool = true) async throws {
        let daemon = try DeviceDaemon(configuration, time: clock, log: log.log)
        let events = EventLog()
        let stream = await daemon.events()
        // Ends when the daemon stops.
        let pump = Task {
            for await event in stream { await events.add(event) }
            await events.end()
        }
        current.withLock { $0 = (daemon, events, pump) }
        try await daemon.start()
        if waits { _ = try await events.next(["connected"]) }
    }

    /// Stops the daemon; its state folder stays.
    public func stop() async {
        let running = current.withLock { current in
            defer { current = nil }
            return current
        }
        guard let running else { return }
        await running.daemon.stop()
        await running.pump.value
    }

    // MARK: What a user does

    /// Logs in; the tutorials' password is the user name.
    public func login(_ user: String, password: String? = nil, tags: [String] = []) async throws {
        try await daemon.login(user: user, password: password ?? user, tags: tags)
    }

    /// Follows news categories; an empty set unsubscribes.
    public func subscribe(_ categories: [String], locale: String? = nil) async throws {
        try await daemon.subscribe(categories: categories, locale: locale)
    }

    /// What the device shows next: the event in which the next push ended.
    public func nextPush() async throws -> DeviceEvent { try await events.next(DeviceEvent.pushNames) }

    /// The text of what the device shows next.
    public func nextText() async throws -> String {
        let event = try await nextPush()
        guard let text = event["text"] else {
            throw WorldFailure("the device \(name) showed \(event.line) instead of a text")
        }
        return text
    }

    package func nextEvent(_ names: String...) async throws -> DeviceEvent {
        try await events.next(Set(names))
    }

    package func status() async throws -> JSONObject { try await daemon.status() }

    /// The platform handle.
    package func handle() async throws -> String {
        guard let handle = try await status()["handle"]?.stringValue else {
            throw WorldFailure("the device \(name) has no handle")
        }
        return handle
    }
}

/// Where a World's daemons log to.
package struct DeviceLog: Sendable {
    let log: Log
}

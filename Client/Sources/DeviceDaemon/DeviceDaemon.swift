import BackendClient
import DeviceLink
import EventLoops
import GatewayConnection
import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
package import PushTelemetry
import TLSTransport
package import TidingsModels

/// A device without a screen: it gets a handle from the gateway, registers, receives, fetches and shows.
public actor DeviceDaemon {
    let configuration: DaemonConfiguration
    let time: any TimeSource
    let log: Log
    let inbox: Inbox
    let client: HTTPClient
    private let folder: StateFolder
    private let statePath: String
    private let connection: GatewayConnection
    var state: DeviceState
    /// Takes the place of the configured hub in tests of a hub that is away.
    var hubOverride: HubConnectionString?
    /// Set while the gateway is reached.
    private(set) var connectedSince: Timestamp?
    private(set) var disconnected: (since: Timestamp, reason: String)
    private var observers: [AsyncStream<DeviceEvent>.Continuation] = []
    private var channelWaiters: [String: CheckedContinuation<String?, Never>] = [:]
    private var handleWaiters: [Int: CheckedContinuation<Void, Never>] = [:]
    private var nextWaiter = 0
    private var pump: Task<Void, Never>?
    /// Presentations that wait for a fetch; ``stop()`` waits for them.
    private var presentations: [Int64: Task<Void, Never>] = [:]
    /// The end of the queue of width one in which registrations, subscriptions and pending fetches run, like the tutorials'.
    private var queueEnd: Task<Void, Never>?
    /// The next attempt after a failed registration or subscription.
    var retryTask: Task<Void, Never>?
    var retryCount = 0
    private(set) var isStopped = false
    /// Set while the user changes: what comes meanwhile is for whoever is logged in afterwards, or for nobody.
    private var held: [DeviceNotification]?

    /// Opens the state folder and takes its lock.
    package init(_ configuration: DaemonConfiguration, time: any TimeSource, log: Log) throws {
        self.configuration = configuration
        self.time = time
        self.log = log
        folder = try StateFolder(path: configuration.statePath)
        statePath = configuration.statePath + "/device.json"
        state = try DeviceState.load(statePath, newInstallationID: Self.newUUID())
        try state.save(statePath)
        inbox = try Inbox(path: configuration.statePath + "/inbox.sqlite")
        var trust = OutboundTrust()
        var tls: TLSContext?
        if let file = configuration.authorityFile {
            guard let pem = try Files.read(file) else {
                throw DaemonFailure("The CA file \(file) does not exist.")
            }
            for url in [
                configuration.gateway, configuration.backend, configuration.hub?.endpoint,
                configuration.sendHub?.endpoint,
            ] {
                if let url { trust.authorityFiles[url.origin] = file }
            }
            tls = try TLSContext.client(trusting: pem, protocols: ["http/1.1"])
        } else if configuration.gateway.scheme == "https" {
            tls = try TLSContext.client(protocols: ["http/1.1"])
        }
        client = HTTPClient(trust: trust, userAgent: "tidings-device")
        connection = GatewayConnection(
            url: configuration.gateway,
            tls: tls,
            uaid: state.uaid,
            jitter: { Double.random(in: 0..<1) }
        )
        disconnected = (time.now, "starting")
    }

    /// Connects, and goes on with what the last run left: pushes that were stored and not shown.
    public func start() async throws {
        for entry in try await inbox.unshown() { await present(entry) }
        connection.start()
        if state.channelID == nil {
            state.channelID = Self.newUUID()
            try save()
        }
        requestHandle()
        for channelID in state.formerChannelIDs { giveBack(channelID) }
        // `stop` waits for it.
        pump = Task { [connection] in
            for await event in connection.events { await self.received(event) }
        }
    }

    /// Disconnects and waits for what is being shown.
    public func stop() async {
        isStopped = true
        connection.stop()
        await pump?.value
        // What waits to be shown is shown at the next start.
        for task in presentations.values { task.cancel() }
        for task in presentations.values { await task.value }
        retryTask?.cancel()
        for observer in observers { observer.finish() }
        inbox.close()
        folder.release()
    }

    /// The events from now on.
    public func events() -> AsyncStream<DeviceEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: DeviceEvent.self)
        observers.append(continuation)
        return stream
    }

    func emit(_ event: DeviceEvent) {
        for observer in observers { observer.yield(event) }
    }

    /// Runs after everything that was queued before, and alone.
    func inQueue<Value: Sendable>(
        _ body: @escaping @Sendable (isolated DeviceDaemon) async throws -> Value
    ) async throws -> Value {
        let before = queueEnd
        let task = Task {
            await before?.value
            return try await body(self)
        }
        queueEnd = Task { _ = try? await task.value }
        return try await task.value
    }

    func save() throws { try state.save(statePath) }

    static func newUUID() -> String {
        var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let text = Array(Hex.encode(bytes).utf8)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: text[$0], as: UTF8.self) }
            .joined(separator: "-")
    }

    // MARK: The gateway

    private func requestHandle() {
        if let channelID = state.channelID { register(channelID) }
    }

    private func register(_ channelID: String) {
        if configuration.platform == .browser {
            connection.register(channelID: channelID, platform: nil, key: configuration.vapidKey)
        } else {
            connection.register(channelID: channelID, platform: configuration.platform, key: nil)
        }
    }

    /// The handle that stands for what the gateway answered.
    private func handle(_ endpoint: String) throws -> String {
        guard configuration.platform == .browser else { return endpoint }
        let keys = try state.webPush ?? .make()
        if state.webPush == nil {
            state.webPush = keys
            try save()
        }
        return keys.handle(endpoint)
    }

    /// Gives the handle back and asks for a fresh one, as an operating system does when an app is reinstalled. What is under
    /// way to the old one reaches nobody.
    package func renewHandle() throws {
        let former = state.channelID
        if let former { state.formerChannelIDs.append(former) }
        state.channelID = Self.newUUID()
        state.handle = nil
        try save()
        if let former { giveBack(former) }
        requestHandle()
    }

    /// A further channel with its handle. Until it takes the place of the device's own, the next start gives it back.
    ///
    /// - Throws: ``DaemonFailure`` when the gateway does not answer within ``DaemonConfiguration/handleTimeout``.
    func newChannel() async throws -> (id: String, handle: String) {
        let id = Self.newUUID()
        state.formerChannelIDs.append(id)
        try save()
        register(id)
        let timeout = Task { [time] in
            try? await time.sleep(for: DaemonConfiguration.handleTimeout)
            self.channelArrived(id, nil)
        }
        let handle = await withCheckedContinuation { channelWaiters[id] = $0 }
        timeout.cancel()
        guard let handle else {
            giveBack(id)
            throw DaemonFailure("The gateway gives no handle for another user (\(disconnected.reason)).")
        }
        return (id, handle)
    }

    private func channelArrived(_ id: String, _ handle: String?) {
        channelWaiters.removeValue(forKey: id)?.resume(returning: handle)
    }

    /// Ends a channel at the gateway; it is listed among the former ones until that is confirmed.
    func giveBack(_ channelID: String) { connection.unregister(channelID: channelID) }

    /// Holds back what comes until ``release()``.
    func hold() { held = [] }

    /// Shows what was held, as far as it is for the device's present channel.
    func release() async {
        let waiting = held ?? []
        held = nil
        for notification in waiting { await received(.notification(notification)) }
    }

    /// Drops the connection, which then comes back by itself.
    package func reconnect() { connection.reconnect() }

    private func received(_ event: GatewayEvent) async {
        do {
            switch event {
            case .connected(let uaid):
                connectedSince = time.now
                if state.uaid != uaid {
                    // A gateway that does not know the device any more knows no handle of it either.
                    let isForgotten = state.uaid != nil
                    state.uaid = uaid
                    try save()
                    if isForgotten { requestHandle() }
                }
                emit(DeviceEvent("connected", ["gateway": .string(configuration.gateway.origin)]))
                // What failed while the network was away is tried again; what is fresh is left alone.
                if state.handle != nil { scheduleRegistration(after: .zero) }
            case .disconnected(let reason):
                if connectedSince != nil { disconnected.since = time.now }
                connectedSince = nil
                disconnected.reason = reason
                emit(DeviceEvent("disconnected", ["reason": .string(reason)]))
            case .registered(let channelID, let endpoint):
                let handle = try handle(endpoint)
                channelArrived(channelID, handle)
                if channelID == state.channelID { try await handleArrived(handle) }
            case .registrationRefused(let channelID, let status, let reason):
                channelArrived(channelID, nil)
                emit(DeviceEvent("handle_refused", ["status": .number(status), "reason": .string(reason)]))
            case .unregistered(let channelID):
                if state.formerChannelIDs.contains(channelID) {
                    state.formerChannelIDs.removeAll { $0 == channelID }
                    try save()
                }
            case .notification(let notification): try await arrived(notification)
            }
        } catch {
            log.error("device_failed", ["reason": .string(String(describing: error))])
            emit(DeviceEvent("error", ["reason": .string(String(describing: error))]))
        }
    }

    private func handleArrived(_ handle: String) async throws {
        let isNew = state.handle != handle
        if isNew {
            state.handle = handle
            try save()
            emitHandle()
        }
        let waiters = handleWaiters
        handleWaiters = [:]
        for waiter in waiters.values { waiter.resume() }
        // A known handle was taken up when the connection came.
        if isNew { scheduleRegistration(after: .zero) }
    }

    func emitHandle() {
        guard let handle = state.handle else { return }
        emit(
            DeviceEvent(
                "handle",
                ["platform": .string(configuration.platform.appName), "handle": .string(handle)]
            )
        )
    }

    /// The handle, waiting for it up to ``DaemonConfiguration/handleTimeout``.
    func currentHandle() async throws -> String {
        if let handle = state.handle, connectedSince != nil { return handle }
        if state.handle == nil || connectedSince == nil {
            let ticket = nextWaiter
            nextWaiter += 1
            let timeout = Task { [time] in
                try? await time.sleep(for: DaemonConfiguration.handleTimeout)
                self.giveUpWaiting(ticket)
            }
            await withCheckedContinuation { handleWaiters[ticket] = $0 }
            timeout.cancel()
        }
        guard let handle = state.handle else {
            throw DaemonFailure(
                "The device has no handle yet: the gateway is not reached (\(disconnected.reason))."
            )
        }
        return handle
    }

    var isWaitingForHandle: Bool { !handleWaiters.isEmpty }

    private func giveUpWaiting(_ ticket: Int) { handleWaiters.removeValue(forKey: ticket)?.resume() }

    // MARK: Pushes

    /// Store, acknowledge, mark shown, show: a kill in between may lose the line, never the entry, and never shows it
    /// twice.
    private func arrived(_ notification: DeviceNotification) async throws {
        guard held == nil else {
            held?.append(notification)
            return
        }
        guard notification.channelID == state.channelID else {
            // For the handle of an earlier user.
            connection.acknowledge([
                .init(channelID: notification.channelID, version: notification.version, code: 102)
            ])
            return
        }
        try await TraceID.$current.withValue(notification.trace) {
            // Web Push is the one platform that the link does not name.
            guard notification.platform == nil else { return try await take(notification) }
            var opened: DeviceNotification?
            do throws(WebPushMessage.Failure) {
                guard let keys = state.webPush else {
                    throw WebPushMessage.Failure("the device has no keys for Web Push")
                }
                opened = try keys.open(notification)
            } catch {
                refuse(notification, error)
            }
            if let opened { try await take(opened) }
        }
    }

    /// Nobody can read it, now or later: the gateway may forget it.
    private func refuse(_ notification: DeviceNotification, _ failure: WebPushMessage.Failure) {
        log.warning("push_unreadable", ["reason": .string(failure.description)])
        connection.acknowledge([
            .init(channelID: notification.channelID, version: notification.version, code: 101)
        ])
        emit(DeviceEvent("unreadable", ["reason": .string(failure.description)]))
    }

    private func take(_ notification: DeviceNotification) async throws {
        let entry = try await inbox.add(notification, user: state.login?.user, now: time.now)
        log.debug(
            entry == nil ? "push_repeated" : "push_stored",
            ["version": .string(notification.version)]
        )
        connection.acknowledge([
            .init(
                channelID: notification.channelID,
                version: notification.version,
                code: entry == nil ? 102 : 100
            )
        ])
        guard let entry else { return }
        await present(entry)
    }

    /// Shows at once what needs no fetch; the rest in a task of its own, so that it holds nothing up.
    private func present(_ entry: InboxEntry) async {
        let content = PushContent(entry.notification)
        switch content {
        case .text, .silent, .unreadable: await show(entry, content)
        case .secure, .rich:
            presentations[entry.id] = Task {
                await self.show(entry, content)
                self.presentations[entry.id] = nil
            }
        }
    }

    private func show(_ entry: InboxEntry, _ content: PushContent) async {
        do { try await presentContent(entry, content) } catch is CancellationError {
            // Stopping: it stays unshown in the inbox.
        } catch {
            log.error("inbox_failed", ["reason": .string(String(describing: error))])
            emit(DeviceEvent("error", ["reason": .string(String(describing: error))]))
        }
    }
}

/// A command that cannot be done, or a file that cannot be used.
package struct DaemonFailure: Error, CustomStringConvertible, Sendable {
    package let description: String
    init(_ description: String) { self.description = description }
}

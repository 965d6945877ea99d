import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import SQLiteStorage
import Synchronization
import TagIndex
import Testing
import TidingsBackend
import TidingsConformance
import TidingsModels
@testable import HubCore
@testable import HubStore

/// A platform that answers as it is told and remembers what it got.
final class ScriptedSender: PlatformSender {
    private let received = Mutex<[[String]]>([])
    // Not inside the mutex: there a closure gets another wrapper at each access, which ends in a deep stack.
    private let script: @Sendable (Int, PushTarget) -> TargetAnswer

    init(_ script: @escaping @Sendable (_ call: Int, PushTarget) -> TargetAnswer) { self.script = script }

    var calls: [[String]] { received.withLock { $0 } }
    var handles: [String] { calls.flatMap { $0 } }

    func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        let call = received.withLock { calls in
            calls.append(targets.map(\.handle.text))
            return calls.count
        }
        return targets.map { script(call, $0) }
    }
}

/// A platform that answers nobody until it is let go.
final class HeldSender: PlatformSender {
    private let open: Task<Void, Never>

    init(until stream: AsyncStream<Void>) { open = Task { for await _ in stream {} } }

    func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
        await open.value
        return targets.map { _ in .accepted }
    }
}

struct Silent: DispatchObserver {
    func sendEnded(hub: String, _ id: NotificationID, state: NotificationState, targets: Int) {}
    func targetFailed(
        hub: String,
        _ id: NotificationID,
        _ handle: PlatformHandle,
        outcome: Outcome,
        reason: String
    ) {}
    func deferred(hub: String, _ platform: Platform, count: Int) {}
    func circuitChanged(hub: String, _ service: PushService, _ change: Circuit.Change, reason: String) {}
    func attempted(hub: String, _ result: AttemptResult) {}
    func queueFailed(hub: String, reason: String) {}
    func dispatchFailed(hub: String, _ id: NotificationID, reason: String) {}
}

struct TestHub {
    let hub: Hub
    let store: SQLiteHubStore
    let clock: WorldClock

    static func open(
        _ folder: String,
        _ senders: [Platform: any PlatformSender],
        clock: WorldClock = WorldClock()
    ) async throws -> TestHub {
        let index = RoaringIndex(seed: 5)
        let store = try await SQLiteHubStore(path: folder + "/hub.sqlite", index: index)
        let random = InjectedRandom { UInt64.random(in: .min ... .max) }
        let dispatcher = Dispatcher(
            hub: "h",
            store: store,
            index: index,
            queue: store,
            senders: SenderDirectory(senders),
            time: clock,
            random: random,
            observer: Silent()
        )
        let hub = Hub(
            name: "h",
            settings: HubSettings(policies: []),
            listenMode: .strict,
            channelMode: .original,
            store: store,
            queue: store,
            dispatcher: dispatcher,
            time: clock,
            random: random
        )
        await dispatcher.resume()
        return TestHub(hub: hub, store: store, clock: clock)
    }

    func close() async {
        await hub.dispatcher.stop()
        store.close()
    }

    func register(_ index: Int, tags: String = "all") async throws -> Registration {
        let handle = try PlatformHandle(String(format(index)), platform: .apns)
        return try await hub.create(
            RegistrationContent(handle: handle, tags: try HubTag.list(tags)),
            by: .manager
        )
    }

    private func format(_ index: Int) -> String {
        let text = String(index, radix: 16)
        return String(repeating: "0", count: 8 - text.count) + text
    }

    /// Returns once so many sends wait for their time.
    func resting(_ count: Int = 1) async throws {
        while try await hub.dispatcher.sendCounts().resting != count { await Task.yield() }
    }

    /// - Parameter step: Moves the clock on before each look.
    func outcome(_ id: NotificationID, advancing step: Duration? = nil) async throws -> NotificationDetails {
        let deadline = ContinuousClock.now + .seconds(60)
        while true {
            let details = try await hub.details(id.text)
            if details.state.isFinal { return details }
            if let step { clock.advance(by: step) }
            try #require(ContinuousClock.now < deadline, "the send is still \(details.state.rawValue)")
            // The store has no way to tell; a client of the protocol would ask again as well.
            try await Task.sleep(for: .milliseconds(2))
        }
    }
}

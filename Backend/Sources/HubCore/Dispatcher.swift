import Synchronization
package import TidingsModels

/// The senders of a hub, by platform. A platform without one has no credentials.
package final class SenderDirectory: Sendable {
    private let senders: Mutex<[Platform: any PlatformSender]>

    package init(_ senders: [Platform: any PlatformSender] = [:]) { self.senders = Mutex(senders) }

    package subscript(platform: Platform) -> (any PlatformSender)? { senders.withLock { $0[platform] } }

    package var all: [Platform: any PlatformSender] { senders.withLock { $0 } }

    /// Takes effect with the next block.
    package func replace(_ new: [Platform: any PlatformSender]) { senders.withLock { $0 = new } }
}

/// How often and when a target is tried again (push services reference, section 1.9).
package struct RetryPolicy: Sendable {
    package var attemptCountMax = 5
    package var delayMin = Duration.seconds(1)
    package var delayMax = Duration.seconds(300)

    package init() {}

    /// The wait before the next try: what the platform asked for, else doubling with full jitter.
    package func delay(afterAttempt attempt: Int, asked: Duration?, jitter: Double) -> Duration {
        // What the platform asks for is honoured; the send's time budget bounds it.
        if let asked { return asked }
        return min(delayMin * (1 << min(attempt, 16)), delayMax) * (0.5 + jitter / 2)
    }
}

/// What a dispatcher tells the operator. No payload and no whole handle.
package protocol DispatchObserver: Sendable {
    func sendEnded(hub: String, _ id: NotificationID, state: NotificationState, targets: Int)
    func targetFailed(
        hub: String,
        _ id: NotificationID,
        _ handle: PlatformHandle,
        outcome: Outcome,
        reason: String
    )
    /// Targets wait for an open circuit.
    func deferred(hub: String, _ platform: Platform, count: Int)
    func circuitChanged(hub: String, _ service: PushService, _ change: Circuit.Change, reason: String)
    /// Targets were tried, and what came of it is stored.
    func attempted(hub: String, _ result: AttemptResult)
    func dispatchFailed(hub: String, _ id: NotificationID, reason: String)
    /// The queue could not be read; it is tried again.
    func queueFailed(hub: String, reason: String)
}

/// Carries accepted sends to the platforms, block by block.
///
/// Every target of a send ends in exactly one outcome. A block's outcomes, its retries and its finished mark are stored
/// together, so that after a crash the unfinished blocks, and only they, are sent again, and nobody's next try is forgotten.
package actor Dispatcher {
    package static let blockCount = 1024
    /// Blocks of one send under way at a time.
    static let blocksInFlightMax = 4
    /// Sends under way at a time; others wait in the queue, on disk.
    private static let sendsInFlightMax = 32
    /// After so long the rest of a send is given up, as in the original.
    package static let timeBudget = Duration.seconds(30 * 60)

    let hub: String
    let store: any RegistrationStore
    let index: any AudienceIndex
    let queue: any SendQueue
    package nonisolated let senders: SenderDirectory
    package nonisolated let circuits = Circuits()
    let time: any TimeSource
    let retry: RetryPolicy
    let random: InjectedRandom
    let observer: any DispatchObserver
    /// Sends that were read from the queue and wait for a place. Everything else stays on disk, however long the queue is.
    private var ready: [NotificationID] = []
    private static let readyCountMax = 256
    private var running: [NotificationID: Task<Void, Never>] = [:]
    /// The queue may hold more that is due.
    private var hasMore = false
    private var isReading = false
    /// Sends that the store failed, how often in a row, and until when they are left alone.
    private var failing: [NotificationID: (count: Int, until: Timestamp)] = [:]
    private static let failingCountMax = 1000
    /// Wakes the dispatcher when something becomes due.
    private var alarm: (at: Timestamp, task: Task<Void, Never>)?
    private var isStopping = false

    package init(
        hub: String,
        store: any RegistrationStore,
        index: any AudienceIndex,
        queue: any SendQueue,
        senders: SenderDirectory,
        time: any TimeSource,
        retry: RetryPolicy = RetryPolicy(),
        random: InjectedRandom,
        observer: any DispatchObserver
    ) {
        self.hub = hub
        self.store = store
        self.index = index
        self.queue = queue
        self.senders = senders
        self.time = time
        self.retry = retry
        self.random = random
        self.observer = observer
    }

    /// Other senders take effect with the next block, and nothing is held against them.
    package nonisolated func replace(_ senders: [Platform: any PlatformSender]) {
        self.senders.replace(senders)
        circuits.reset()
    }

    /// Sends that wait for a place, are under way, and whose time comes later: scheduled ones, and those whose targets wait for
    /// another try.
    package func sendCounts() async throws -> (waiting: Int, underWay: Int, resting: Int) {
        let counts = try await queue.liveCounts(now: time.now)
        return (max(0, counts.due - running.count), running.count, counts.later)
    }

    /// Sends that memory holds.
    package var heldCount: Int { ready.count + running.count }

    /// Takes up what an earlier run of the process left.
    package func resume() {
        hasMore = true
        startReady()
    }

    /// Takes up a send that is in the queue. One that is under way already is left alone.
    ///
    /// - Parameter due: When its time comes.
    package func submit(_ id: NotificationID, due: Timestamp) {
        guard !isStopping else { return }
        guard due <= time.now else { return wake(at: due) }
        if hasMore || isReading || ready.count >= Self.readyCountMax {
            // Behind what came before it: it is read in its turn.
            hasMore = true
        } else if running[id] == nil, !ready.contains(id) {
            ready.append(id)
        }
        startReady()
    }

    /// Stops after the blocks under way; the rest stays in the queue on disk.
    package func stop() async {
        isStopping = true
        alarm?.task.cancel()
        for task in running.values { task.cancel() }
        for task in running.values { await task.value }
    }

    private func startReady() {
        while !isStopping, running.count < Self.sendsInFlightMax, !ready.isEmpty {
            let id = ready.removeFirst()
            // `stop` waits for it.
            running[id] = Task { await self.run(id) }
        }
        if !isStopping, hasMore, !isReading, ready.isEmpty, running.count < Self.sendsInFlightMax {
            isReading = true
            hasMore = false
            // Ends with one look into the queue; a stopped dispatcher does nothing with it.
            Task { await self.read() }
        }
    }

    /// Reads the next sends from the queue, and when the one after them is due.
    private func read() async {
        let now = time.now
        do {
            let held = Set(running.keys).union(failing.filter { $0.value.until > now }.keys)
            let ids = try await queue.due(by: now, excluding: held, countMax: Self.readyCountMax)
            ready = ids.filter { running[$0] == nil }
            if ids.count == Self.readyCountMax {
                hasMore = true
            } else if let next = try await queue.nextDue(after: now) {
                wake(at: next)
            }
        } catch {
            observer.queueFailed(hub: hub, reason: String(describing: error))
            wake(at: time.now + retry.delay(afterAttempt: 0, asked: nil, jitter: 0.5))
        }
        isReading = false
        startReady()
    }

    private func wake(at moment: Timestamp) {
        guard !isStopping else { return }
        if let alarm {
            if alarm.at <= moment { return }
            alarm.task.cancel()
        }
        let task = Task {
            guard (try? await time.sleep(until: moment)) != nil else { return }
            self.woke()
        }
        alarm = (moment, task)
    }

    private func woke() {
        alarm = nil
        hasMore = true
        startReady()
    }

    private func run(_ id: NotificationID) async {
        do {
            let next = try await advance(id)
            failing[id] = nil
            if let next { wake(at: next) }
        } catch is CancellationError {
            // Stopped: the next start takes it up.
        } catch {
            observer.dispatchFailed(hub: hub, id, reason: String(describing: error))
            // The store is in trouble: wait, then go on with what it has. Nothing is lost meanwhile.
            let count = (failing[id]?.count ?? 0) + 1
            let until = time.now + retry.delay(afterAttempt: count, asked: nil, jitter: 0.5)
            if failing.count >= Self.failingCountMax { failing.removeAll() }
            failing[id] = (count, until)
            wake(at: until)
        }
        running[id] = nil
        startReady()
    }

    /// Brings a send as far as it goes now.
    ///
    /// - Returns: When to go on; nil when it is over.
    private nonisolated func advance(_ id: NotificationID) async throws -> Timestamp? {
        guard let send = try await queue.pending(id) else { return nil }
        if let scheduled = send.scheduled, scheduled > time.now { return scheduled }
        return try await TraceID.$current.withValue(send.trace) {
            switch send.isDispatched ? try await retry(send) : try await dispatch(send) {
            case .waits(let until): return until
            case .ended(let state, let targetCount):
                observer.sendEnded(hub: hub, id, state: state, targets: targetCount)
                return nil
            }
        }
    }
}

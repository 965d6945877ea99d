import Synchronization
package import TidingsModels

/// The senders of a hub, by platform. A platform without one has no credentials.
package final class SenderDirectory: Sendable {
    private let senders: Mutex<[Platform: any PlatformSender]>

    package init(_ senders: [Platform: any PlatformSender] = [:]) { self.senders = Mutex(senders) }

    package subscript(platform: Platform) -> (any PlatformSender)? { senders.withLock { $0[platform] } }

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
    /// Targets were tried, and what came of it is stored.
    func attempted(hub: String, _ result: AttemptResult)
    func dispatchFailed(hub: String, _ id: NotificationID, reason: String)
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
    let time: any TimeSource
    let retry: RetryPolicy
    let random: InjectedRandom
    let observer: any DispatchObserver
    private var waiting: [NotificationID] = []
    private var nextWaiting = 0
    private var running: [NotificationID: Task<Void, Never>] = [:]
    /// Sends whose time has not come, and those whose targets wait for another try. They hold no place among those under way.
    private var resting: [NotificationID: Task<Void, Never>] = [:]
    /// How often the store failed a send in a row.
    private var failureCounts: [NotificationID: Int] = [:]
    private var isStopping = false
    /// Sends that wait, run or rest.
    private var known: Set<NotificationID> = []

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

    /// Sends that wait for a place, are under way, and wait for another try of their targets.
    package var sendCounts: (waiting: Int, underWay: Int, resting: Int) {
        (waiting.count - nextWaiting, running.count, resting.count)
    }

    /// Takes up what an earlier run of the process left.
    package func resume() async throws {
        for id in try await queue.unfinished() { submit(id) }
    }

    /// Takes up a send that is in the queue. One that is under way already is left alone.
    package func submit(_ id: NotificationID) {
        guard !isStopping, known.insert(id).inserted else { return }
        waiting.append(id)
        startWaiting()
    }

    /// Stops after the blocks under way; the rest stays in the queue on disk.
    package func stop() async {
        isStopping = true
        for task in resting.values { task.cancel() }
        for task in running.values { task.cancel() }
        for task in running.values { await task.value }
    }

    /// Forgets a scheduled send that was cancelled.
    package func drop(_ id: NotificationID) {
        guard let task = resting.removeValue(forKey: id) else { return }
        task.cancel()
        known.remove(id)
    }

    private func startWaiting() {
        while !isStopping, running.count < Self.sendsInFlightMax, nextWaiting < waiting.count {
            let id = waiting[nextWaiting]
            nextWaiting += 1
            // `stop` waits for it.
            running[id] = Task { await self.run(id) }
        }
        if nextWaiting == waiting.count || nextWaiting > 1024 && nextWaiting * 2 > waiting.count {
            waiting.removeFirst(nextWaiting)
            nextWaiting = 0
        }
    }

    private func run(_ id: NotificationID) async {
        var next: Timestamp?
        do {
            next = try await advance(id)
            failureCounts[id] = nil
        } catch is CancellationError {
            // Stopped: the next start takes it up.
        } catch {
            observer.dispatchFailed(hub: hub, id, reason: String(describing: error))
            // The store is in trouble: wait, then go on with what it has. Nothing is lost meanwhile.
            failureCounts[id, default: 0] += 1
            next = time.now + retry.delay(afterAttempt: failureCounts[id] ?? 0, asked: nil, jitter: 0.5)
        }
        running[id] = nil
        if let next { rest(id, until: next) } else { known.remove(id) }
        startWaiting()
    }

    private func rest(_ id: NotificationID, until moment: Timestamp) {
        guard !isStopping else { return }
        // Ends by itself or with `stop`, and holds nothing but the id.
        resting[id] = Task {
            guard (try? await time.sleep(until: moment)) != nil else { return }
            self.wake(id)
        }
    }

    private func wake(_ id: NotificationID) {
        guard resting.removeValue(forKey: id) != nil else { return }
        waiting.append(id)
        startWaiting()
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

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
    func dispatchFailed(hub: String, _ id: NotificationID, reason: String)
}

/// Carries accepted sends to the platforms, block by block.
///
/// Every target of a send ends in exactly one outcome. A block's outcomes and its finished mark are stored together,
/// so that after a crash the unfinished blocks, and only they, are sent again.
package actor Dispatcher {
    package static let blockCount = 1024
    /// Blocks of one send under way at a time.
    private static let blocksInFlightMax = 4
    /// Sends under way at a time; others wait in the queue, on disk.
    private static let sendsInFlightMax = 32
    /// After so long the rest of a send is given up, as in the original.
    package static let timeBudget = Duration.seconds(30 * 60)

    let hub: String
    let store: any RegistrationStore
    let index: any AudienceIndex
    let queue: any SendQueue
    let senders: SenderDirectory
    let time: any TimeSource
    let retry: RetryPolicy
    let random: InjectedRandom
    let observer: any DispatchObserver
    private var waiting: [PendingSend] = []
    private var nextWaiting = 0
    private var running: [NotificationID: Task<Void, Never>] = [:]
    private var isStopping = false
    /// Sends that wait or run.
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

    /// Takes up what an earlier run of the process left.
    package func resume() async throws {
        for send in try await queue.unfinished() where running[send.id] == nil { submit(send) }
    }

    /// A send that is under way already is left alone.
    package func submit(_ send: PendingSend) {
        guard running[send.id] == nil, known.insert(send.id).inserted else { return }
        waiting.append(send)
        startWaiting()
    }

    /// Stops after the blocks under way; the rest stays in the queue on disk.
    package func stop() async {
        isStopping = true
        for task in running.values { task.cancel() }
        for task in running.values { await task.value }
    }

    private func startWaiting() {
        while !isStopping, running.count < Self.sendsInFlightMax, nextWaiting < waiting.count {
            let send = waiting[nextWaiting]
            nextWaiting += 1
            // `stop` waits for it.
            running[send.id] = Task { await self.run(send) }
        }
        if nextWaiting == waiting.count {
            waiting = []
            nextWaiting = 0
        }
    }

    private func run(_ send: PendingSend) async {
        var send = send
        var failureCount = 0
        while true {
            do {
                try await dispatch(send)
                break
            } catch is CancellationError {
                // Stopped: the next start takes it up.
                break
            } catch {
                observer.dispatchFailed(hub: hub, send.id, reason: String(describing: error))
                // The store is in trouble: wait, then go on with what it has. Nothing is lost meanwhile.
                failureCount += 1
                let delay = retry.delay(afterAttempt: failureCount, asked: nil, jitter: 0.5)
                guard (try? await time.sleep(for: delay)) != nil else { break }
                if let stored = try? await queue.unfinished().first(where: { $0.id == send.id }) {
                    send = stored
                }
            }
        }
        running[send.id] = nil
        known.remove(send.id)
        startWaiting()
    }

    private nonisolated func dispatch(_ send: PendingSend) async throws {
        let expression = try send.expression
        let audience: any Audience
        if let stored = send.audience,
            let restored = index.audience(serialized: stored.serialized, change: stored.change)
        {
            audience = restored
        } else {
            audience = index.resolve(send.indexKind, expression)
            try await queue.begin(send.id, audience, now: time.now)
        }
        guard audience.count > 0 else {
            try await queue.end(send.id, .noTargetFound, now: time.now)
            return observer.sendEnded(hub: hub, send.id, state: .noTargetFound, targets: 0)
        }
        let isAbandoned = try await withThrowingTaskGroup(of: Bool.self) { group in
            var block = 0
            var after: UInt32?
            var inFlight = 0
            var isAbandoned = false
            while true {
                try Task.checkCancellation()
                let numbers = audience.numbers(after: after, countMax: Self.blockCount)
                guard let last = numbers.last else { break }
                after = last
                if !send.finishedBlocks.contains(block) {
                    if inFlight == Self.blocksInFlightMax {
                        isAbandoned = try await group.next() == true || isAbandoned
                        inFlight -= 1
                    }
                    let index = block
                    group.addTask { try await self.run(send, expression, audience, block: index, numbers) }
                    inFlight += 1
                }
                block += 1
            }
            for try await result in group where result { isAbandoned = true }
            return isAbandoned
        }
        let state = isAbandoned ? NotificationState.abandoned : .completed
        try await queue.end(send.id, state, now: time.now)
        observer.sendEnded(hub: hub, send.id, state: state, targets: audience.count)
    }
}

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

    private let hub: String
    private let store: any RegistrationStore
    private let index: any AudienceIndex
    private let queue: any SendQueue
    private let senders: SenderDirectory
    private let time: any TimeSource
    private let retry: RetryPolicy
    private let random: InjectedRandom
    private let observer: any DispatchObserver
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
        let expression = send.tags.isEmpty ? nil : try TagExpression(parsing: send.tags)
        let audience: any Audience
        if let stored = send.audience,
            let restored = index.audience(serialized: stored.serialized, change: stored.change)
        {
            audience = restored
        } else {
            let kind: IndexEntry.Kind =
                if case .native(let platform) = send.notification.format { .native(platform) } else {
                    .template
                }
            audience = index.resolve(kind, expression)
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

    /// Sends one block and stores its outcomes; true when targets were given up for lack of time.
    private nonisolated func run(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: any Audience,
        block: Int,
        _ numbers: [UInt32]
    ) async throws -> Bool {
        var renderer = try DispatchRenderer(
            send.notification,
            expression: expression,
            hasLegacyGoogle: senders[.gcm] != nil
        )
        let records = try await store.stored(numbers)
        var outcomes = OutcomeCounts()
        // A registration that is gone has no platform any more: it counts under the format's, or the first one.
        let gonePlatform: Platform =
            if case .native(let platform) = send.notification.format { platform } else { .apns }
        if records.count < numbers.count {
            outcomes[gonePlatform, default: [:]][.skipped, default: 0] += numbers.count - records.count
        }

        var units: [DispatchRenderer.UnitKey: [StoredRegistration]] = [:]
        for record in records {
            let platform = record.registration.content.handle.platform
            guard renderer.addresses(record.registration) else {
                outcomes[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            let key = renderer.key(record.registration)
            if record.hasLowerSibling, try await isRepeat(record, key, audience, &renderer) {
                outcomes[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            units[key, default: []].append(record)
        }
        var deliveries: [(platform: Platform, payload: PlatformPayload, targets: [StoredRegistration])] = []
        for (key, targets) in units {
            guard let first = targets.first else { continue }
            switch renderer.payload(key, for: first.registration) {
            case .failure(let refusal):
                outcomes[key.platform, default: [:]][refusal.outcome, default: 0] += targets.count
                observer.targetFailed(
                    hub: hub,
                    send.id,
                    first.registration.content.handle,
                    outcome: refusal.outcome,
                    reason: refusal.reason
                )
            case .success(let payload): deliveries.append((key.platform, payload, targets))
            }
        }
        // Side by side: a platform in trouble holds up no other.
        try await withThrowingTaskGroup(of: (Platform, [Outcome: Int]).self) { group in
            for delivery in deliveries {
                group.addTask {
                    (delivery.platform, try await self.deliver(send, delivery.payload, delivery.targets))
                }
            }
            for try await (platform, counts) in group {
                for (outcome, count) in counts {
                    outcomes[platform, default: [:]][outcome, default: 0] += count
                }
            }
        }
        let isAbandoned = outcomes.values.contains { $0[.abandoned] != nil }
        try await queue.finish(send.id, block: block, outcomes)
        return isAbandoned
    }

    /// True when a registration of the same handle with a lower number gets the same payload from this send.
    private nonisolated func isRepeat(
        _ record: StoredRegistration,
        _ key: DispatchRenderer.UnitKey,
        _ audience: any Audience,
        _ renderer: inout DispatchRenderer
    ) async throws -> Bool {
        for sibling in try await store.siblings(record.registration.content.handle)
        where sibling.number < record.number {
            // One that came after the resolve gets nothing of this send, so it takes nobody's place.
            if audience.contains(sibling.number), renderer.addresses(sibling.registration),
                renderer.key(sibling.registration) == key
            {
                return true
            }
        }
        return false
    }

    /// A target that waits for its next try.
    private struct Waiting {
        var target: StoredRegistration
        var attemptCount = 0
        var due: Timestamp
    }

    /// Tries every target until it has an outcome. Each waits as long as its own answer asks, not as long as the slowest.
    private nonisolated func deliver(
        _ send: PendingSend,
        _ payload: PlatformPayload,
        _ targets: [StoredRegistration]
    ) async throws -> [Outcome: Int] {
        var outcomes: [Outcome: Int] = [:]
        let end = send.enqueued + Self.timeBudget
        var left = targets.map { Waiting(target: $0, due: send.enqueued) }
        while !left.isEmpty {
            let now = time.now
            guard now < end else {
                outcomes[.abandoned, default: 0] += left.count
                return outcomes
            }
            guard let sender = senders[payload.platform] else {
                outcomes[.invalidCredentials, default: 0] += left.count
                fail(
                    send,
                    left[0].target,
                    .invalidCredentials,
                    "the hub has no credentials for \(payload.platform.format)"
                )
                return outcomes
            }
            let ready = left.filter { $0.due <= now }
            left = left.filter { $0.due > now }
            if ready.isEmpty {
                try await time.sleep(until: min(end, left.map(\.due).min() ?? end))
                continue
            }
            let batch = ready.map {
                PushTarget(
                    handle: $0.target.registration.content.handle,
                    deliveryID: DeliveryIdentity.id(send.id, $0.target.registration.id)
                )
            }
            let answers = await sender.send(payload, to: batch)
            var dead: [(StoredRegistration, Timestamp?)] = []
            for (var item, answer) in zip(ready, answers) {
                switch answer {
                case .accepted: outcomes[.success, default: 0] += 1
                case .dead(let outcome, let reason, let asOf):
                    outcomes[outcome, default: 0] += 1
                    fail(send, item.target, outcome, reason)
                    dead.append((item.target, asOf))
                case .refused(let outcome, let reason):
                    outcomes[outcome, default: 0] += 1
                    fail(send, item.target, outcome, reason)
                case .retry(let outcome, let reason, let after):
                    item.attemptCount += 1
                    var random = random
                    let jitter = Double.random(in: 0..<1, using: &random)
                    item.due =
                        time.now
                        + retry.delay(afterAttempt: item.attemptCount - 1, asked: after, jitter: jitter)
                    guard item.attemptCount < retry.attemptCountMax, item.due < end else {
                        outcomes[outcome, default: 0] += 1
                        fail(send, item.target, outcome, reason)
                        continue
                    }
                    left.append(item)
                }
            }
            try await remove(dead, of: ready.count, send)
        }
        return outcomes
    }

    private nonisolated func fail(
        _ send: PendingSend,
        _ target: StoredRegistration,
        _ outcome: Outcome,
        _ reason: String
    ) {
        observer.targetFailed(
            hub: hub,
            send.id,
            target.registration.content.handle,
            outcome: outcome,
            reason: reason
        )
    }

    /// Batches below this size are too small to tell a mistake from dead devices.
    private static let deadGuardCountMin = 50

    /// Removes registrations whose handle the platform calls dead. When more than a fifth of a large batch would go, the
    /// credentials or the environment are wrong rather than the devices, and nothing is removed
    /// (push services reference, section 10).
    private nonisolated func remove(
        _ dead: [(StoredRegistration, Timestamp?)],
        of count: Int,
        _ send: PendingSend
    ) async throws {
        if count >= Self.deadGuardCountMin, dead.count * 5 > count {
            return observer.dispatchFailed(
                hub: hub,
                send.id,
                reason:
                    "\(dead.count) of \(count) handles were called dead at once; none was removed. Check credentials and environment."
            )
        }
        for (target, asOf) in dead where asOf.map({ target.registration.updated <= $0 }) ?? true {
            // A device that registered again after the platform's verdict is alive.
            _ = try await store.removeDead(target.number, change: target.change)
        }
    }
}

import TidingsModels

extension Dispatcher {
    /// A target that waits for its next try.
    private struct Waiting {
        var target: StoredRegistration
        var attemptCount = 0
        var due: Timestamp
    }

    /// Tries every target until it has an outcome. Each waits as long as its own answer asks, not as long as the slowest.
    nonisolated func deliver(
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
                    Self.noCredentials(payload.platform)
                )
                return outcomes
            }
            let ready = left.filter { $0.due <= now }
            left = left.filter { $0.due > now }
            if ready.isEmpty {
                try await time.sleep(until: min(end, left.map(\.due).min() ?? end))
                continue
            }
            let answers = await sender.send(payload, to: ready.map { pushTarget(send, $0.target) })
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

    static func noCredentials(_ platform: Platform) -> String {
        "the hub has no credentials for \(platform.format)"
    }

    nonisolated func pushTarget(_ send: PendingSend, _ target: StoredRegistration) -> PushTarget {
        PushTarget(
            handle: target.registration.content.handle,
            deliveryID: DeliveryIdentity.id(send.id, target.registration.id)
        )
    }

    nonisolated func fail(
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
    nonisolated func remove(
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

import TidingsModels

extension Dispatcher {
    /// Tries every target once.
    ///
    /// - Parameter attemptCounts: How often a target, by its number, was tried before.
    nonisolated func attempt(
        _ send: PendingSend,
        _ units: [RenderUnit],
        _ attemptCounts: [UInt32: Int]
    ) async throws -> AttemptResult {
        // Side by side: a platform in trouble holds up no other.
        try await withThrowingTaskGroup(of: AttemptResult.self) { group in
            for unit in units {
                group.addTask { try await self.deliver(send, unit, attemptCounts) }
            }
            return try await group.reduce(into: AttemptResult()) { $0.add($1) }
        }
    }

    private nonisolated func deliver(
        _ send: PendingSend,
        _ unit: RenderUnit,
        _ attemptCounts: [UInt32: Int]
    ) async throws -> AttemptResult {
        var result = AttemptResult()
        let end = send.begins + Self.timeBudget
        func all(_ outcome: Outcome, _ reason: String) -> AttemptResult {
            fail(send, unit.targets[0], outcome, reason)
            result.add(outcome, unit.platform, count: unit.targets.count)
            result.failures = unit.targets.prefix(TargetFailure.countMax).map {
                failure(send, $0, outcome, reason)
            }
            return result
        }
        func failed(_ target: StoredRegistration, _ outcome: Outcome, _ reason: String) {
            result.add(outcome, unit.platform)
            fail(send, target, outcome, reason)
            if result.failures.count < TargetFailure.countMax {
                result.failures.append(failure(send, target, outcome, reason))
            }
        }
        let payload: PlatformPayload
        switch unit.payload {
        case .failure(let refusal): return all(refusal.outcome, refusal.reason)
        case .success(let rendered): payload = rendered
        }
        guard time.now < end else { return all(.abandoned, "the time budget of the send is over") }
        guard let sender = senders[payload.platform] else {
            return all(.invalidCredentials, Self.noCredentials(payload.platform))
        }
        let answers = await sender.send(payload, to: unit.targets.map { pushTarget(send, $0) })
        var dead: [(StoredRegistration, Timestamp?)] = []
        for (target, answer) in zip(unit.targets, answers) {
            switch answer {
            case .accepted: result.add(.success, unit.platform)
            case .dead(let outcome, let reason, let asOf):
                failed(target, outcome, reason)
                dead.append((target, asOf))
            case .refused(let outcome, let reason): failed(target, outcome, reason)
            case .retry(let outcome, let reason, let after):
                let count = (attemptCounts[target.number] ?? 0) + 1
                var random = random
                let jitter = Double.random(in: 0..<1, using: &random)
                let due = time.now + retry.delay(afterAttempt: count - 1, asked: after, jitter: jitter)
                guard count < retry.attemptCountMax, due < end else {
                    failed(target, outcome, reason)
                    continue
                }
                result.retries.append(
                    RetryTarget(
                        number: target.number,
                        platform: unit.platform,
                        attemptCount: count,
                        due: due
                    )
                )
            }
        }
        try await remove(dead, of: unit.targets.count, send)
        return result
    }

    /// Tries again what is due, page by page.
    nonisolated func retry(_ send: PendingSend) async throws -> SendProgress {
        let expression = try send.expression
        while true {
            try Task.checkCancellation()
            let due = try await queue.retries(send.id, dueBy: time.now, countMax: Self.blockCount)
            let numbers = due.map(\.number)
            var result = AttemptResult()
            if !due.isEmpty {
                let plan = try await plan(send, expression, nil, numbers)
                let counts = Dictionary(due.map { ($0.number, $0.attemptCount) }) { first, _ in first }
                result = try await attempt(send, plan.units, counts)
                result.add(AttemptResult(outcomes: plan.skipped))
                let missing = Set(plan.missing)
                for target in due where missing.contains(target.number) {
                    result.add(.skipped, target.platform)
                }
            }
            let progress = try await queue.settle(send.id, numbers, result, now: time.now)
            observer.attempted(hub: hub, result)
            // More of them may be due; with none left, a retry without waiting gets its turn behind other sends.
            if due.count < Self.blockCount { return progress }
        }
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

    nonisolated func failure(
        _ send: PendingSend,
        _ target: StoredRegistration,
        _ outcome: Outcome,
        _ reason: String
    ) -> TargetFailure {
        TargetFailure(
            notification: send.id,
            time: time.now,
            handle: target.registration.content.handle,
            registration: send.handles == nil ? target.registration.id.text : "",
            installation: target.slot?.installation,
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
        let gone = send.handles == nil ? dead : try await registrations(of: dead)
        for (target, asOf) in gone where asOf.map({ target.registration.updated <= $0 }) ?? true {
            // A device that registered again after the platform's verdict is alive.
            _ = try await store.removeDead(target.number, change: target.change)
        }
    }
}

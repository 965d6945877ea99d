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
        let sorted = circuits.sort(unit.targets.map(\.registration.content.handle), now: time.now)
        for deferral in sorted.deferred {
            let target = unit.targets[deferral.index]
            guard deferral.until < end else {
                failed(target, deferral.outcome, "not asked, its circuit is open: " + deferral.reason)
                continue
            }
            // It was not tried, so its tries stay.
            result.retries.append(
                RetryTarget(
                    number: target.number,
                    platform: unit.platform,
                    attemptCount: attemptCounts[target.number] ?? 0,
                    due: deferral.until
                )
            )
        }
        if !sorted.deferred.isEmpty {
            observer.deferred(hub: hub, unit.platform, count: sorted.deferred.count)
        }
        let targets = sorted.admitted.map { unit.targets[$0] }
        if targets.isEmpty { return result }
        let answers = await sender.send(payload, to: targets.map { pushTarget(send, $0) })
        watch(zip(targets, answers).map { ($0.registration.content.handle, $1) })
        var dead: [(StoredRegistration, Timestamp?)] = []
        for (index, (target, answer)) in zip(sorted.admitted, zip(targets, answers)) {
            switch answer {
            case .accepted: result.add(.success, unit.platform)
            case .replaced(let handle):
                result.add(.success, unit.platform)
                try await replace(target, by: handle, send)
            case .dead(let outcome, let reason, let asOf):
                failed(target, outcome, reason)
                dead.append((target, asOf))
            case .refused(let outcome, let reason): failed(target, outcome, reason)
            case .retry(let outcome, let reason, let after):
                // Who went first for all loses no try by it.
                let count = (attemptCounts[target.number] ?? 0) + (sorted.probes.contains(index) ? 0 : 1)
                var random = random
                let jitter = Double.random(in: 0..<1, using: &random)
                let due =
                    time.now + retry.delay(afterAttempt: max(0, count - 1), asked: after, jitter: jitter)
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
        try await remove(dead, of: targets.count, send)
        return result
    }

    /// Opens and closes circuits by what the services answered.
    nonisolated func watch(_ answers: [(handle: PlatformHandle, answer: TargetAnswer)]) {
        for (service, change, reason) in circuits.record(answers, now: time.now) {
            observer.circuitChanged(hub: hub, service, change, reason: reason)
        }
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

    /// The registrations of a handle that the platform replaced go on with the new one.
    nonisolated func replace(
        _ target: StoredRegistration,
        by handle: PlatformHandle,
        _ send: PendingSend
    ) async throws {
        let known = send.handles == nil ? [(target, nil)] : try await registrations(of: [(target, nil)])
        for (target, _) in known {
            _ = try await store.replaceHandle(
                target.number,
                change: target.change,
                with: handle,
                now: time.now
            )
        }
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

import TidingsModels

extension Dispatcher {
    /// The most registrations that a test send reaches.
    package static let testTargetCountMax = 10
    private static let testPageCount = 64

    /// Sends to the first ``testTargetCountMax`` registrations that match, each once and at once, and stores how it ended
    /// (protocol reference, section 5.8).
    ///
    /// The answer is the only promise of a test send: it is in no queue, and a crash before the answer ends it.
    nonisolated func test(_ send: PendingSend) async throws -> NotificationOutcome {
        let expression = try send.expression
        let audience: any Audience =
            send.handles.map { HandleAudience(count: $0.count) } ?? index.resolve(send.indexKind, expression)
        var units: [RenderUnit] = []
        var left = Self.testTargetCountMax
        var after: UInt32?
        while left > 0 {
            let numbers = audience.numbers(after: after, countMax: Self.testPageCount)
            guard let last = numbers.last else { break }
            after = last
            for var unit in try await plan(send, expression, audience, numbers).units where left > 0 {
                unit.targets = Array(unit.targets.prefix(left))
                left -= unit.targets.count
                units.append(unit)
            }
        }
        let answers = try await withThrowingTaskGroup(of: [(StoredRegistration, TargetAnswer)].self) {
            group in
            for unit in units { group.addTask { try await self.tryOnce(send, unit) } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        return try await record(send, answers.sorted { $0.0.number < $1.0.number })
    }

    /// One try of each target.
    private nonisolated func tryOnce(
        _ send: PendingSend,
        _ unit: RenderUnit
    ) async throws -> [(StoredRegistration, TargetAnswer)] {
        func all(_ outcome: Outcome, _ reason: String) -> [(StoredRegistration, TargetAnswer)] {
            unit.targets.map { ($0, .refused(outcome, reason: reason)) }
        }
        switch unit.payload {
        case .failure(let refusal): return all(refusal.outcome, refusal.reason)
        case .success(let payload):
            guard let sender = senders[payload.platform] else {
                return all(.invalidCredentials, Self.noCredentials(payload.platform))
            }
            // Somebody waits for it, and it tells of the service: an open circuit does not hold it back.
            let answers = await sender.send(payload, to: unit.targets.map { pushTarget(send, $0) })
            watch(zip(unit.targets, answers).map { ($0.registration.content.handle, $1) })
            let answered = Array(zip(unit.targets, answers))
            let dead: [(StoredRegistration, Timestamp?)] = answered.compactMap { target, answer in
                if case .dead(_, _, let asOf) = answer { (target, asOf) } else { nil }
            }
            try await remove(dead, of: unit.targets.count, send)
            for case (let target, .replaced(let handle)) in answered {
                try await replace(target, by: handle, send)
            }
            return answered
        }
    }

    private nonisolated func record(
        _ send: PendingSend,
        _ answers: [(StoredRegistration, TargetAnswer)]
    ) async throws -> NotificationOutcome {
        var result = NotificationOutcome()
        var attempt = AttemptResult()
        for (target, answer) in answers {
            let content = target.registration.content
            let outcome: Outcome
            var reason = ""
            switch answer {
            case .accepted, .replaced: outcome = .success
            case .dead(let why, let text, _), .retry(let why, let text, _), .refused(let why, let text):
                (outcome, reason) = (why, text)
                fail(send, target, outcome, reason)
                attempt.failures.append(failure(send, target, outcome, reason))
            }
            if outcome == .success { result.success += 1 } else { result.failure += 1 }
            attempt.add(outcome, content.handle.platform)
            result.results.append(
                RegistrationResult(
                    applicationPlatform: content.handle.platform,
                    pnsHandle: content.handle.text,
                    registrationID: send.handles == nil
                        ? target.registration.id : RegistrationID(unchecked: ""),
                    outcome: reason.isEmpty ? outcome.sentence : "\(outcome.sentence): \(reason)"
                )
            )
        }
        let state = answers.isEmpty ? NotificationState.noTargetFound : .completed
        try await queue.record(send, state, attempt, now: time.now)
        observer.attempted(hub: hub, attempt)
        observer.sendEnded(hub: hub, send.id, state: state, targets: answers.count)
        return result
    }
}

extension Outcome {
    /// The outcome as a test send words it; the first three are the original's own words.
    var sentence: String {
        switch self {
        case .success: "The Notification was successfully sent to the Push Notification System"
        case .badChannel, .wrongToken: "The Push Notification System handle for the registration is invalid"
        case .expiredChannel: "The Push Notification System handle for the registration is no longer valid"
        case .skipped: "The registration was skipped"
        case .channelThrottled: "The Push Notification System limits this handle"
        case .throttled: "The Push Notification System limits this hub"
        case .channelDisconnected: "The device is disconnected from the Push Notification System"
        case .dropped: "The Push Notification System dropped the notification"
        case .invalidCredentials:
            "The hub's credentials for the Push Notification System are absent or refused"
        case .invalidNotificationFormat:
            "The Push Notification System does not accept the notification's form"
        case .invalidNotificationSize: "The notification is too large for the Push Notification System"
        case .abandoned: "The notification was given up"
        case .pnsInterfaceError, .pnsServerError: "The Push Notification System failed"
        case .pnsUnavailable: "The Push Notification System is unavailable"
        case .pnsUnreachable: "The Push Notification System cannot be reached"
        case .unknownError: "The outcome is unknown"
        }
    }
}

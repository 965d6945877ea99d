import TidingsModels

extension PendingSend {
    /// Nil for a broadcast.
    var expression: TagExpression? {
        get throws { tags.isEmpty ? nil : try TagExpression(parsing: tags) }
    }

    /// Which registrations it can address.
    var indexKind: IndexEntry.Kind {
        if case .native(let platform) = notification.format { .native(platform) } else { .template }
    }
}

extension Dispatcher {
    /// The targets of one render unit, with their payload or why there is none.
    struct RenderUnit {
        var platform: Platform
        var payload: Result<PlatformPayload, PayloadRefusal>
        var targets: [StoredRegistration]
    }

    /// Looks a block's registrations up and renders for them.
    ///
    /// - Returns: What is to be sent, and the outcomes of the numbers that get nothing.
    nonisolated func plan(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: any Audience,
        _ numbers: [UInt32]
    ) async throws -> (units: [RenderUnit], skipped: OutcomeCounts) {
        var renderer = try DispatchRenderer(
            send.notification,
            expression: expression,
            hasLegacyGoogle: senders[.gcm] != nil
        )
        let records = try await store.stored(numbers)
        var skipped = OutcomeCounts()
        // A registration that is gone has no platform any more: it counts under the format's, or the first one.
        let gonePlatform: Platform =
            if case .native(let platform) = send.notification.format { platform } else { .apns }
        if records.count < numbers.count {
            skipped[gonePlatform, default: [:]][.skipped, default: 0] += numbers.count - records.count
        }
        var targets: [DispatchRenderer.UnitKey: [StoredRegistration]] = [:]
        for record in records {
            let platform = record.registration.content.handle.platform
            guard renderer.addresses(record.registration) else {
                skipped[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            let key = renderer.key(record.registration)
            if record.hasLowerSibling, try await isRepeat(record, key, audience, &renderer) {
                skipped[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            targets[key, default: []].append(record)
        }
        let units = targets.compactMap { key, targets in
            targets.first.map {
                RenderUnit(
                    platform: key.platform,
                    payload: renderer.payload(key, for: $0.registration),
                    targets: targets
                )
            }
        }
        return (units, skipped)
    }

    /// Sends one block and stores its outcomes; true when targets were given up for lack of time.
    nonisolated func run(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: any Audience,
        block: Int,
        _ numbers: [UInt32]
    ) async throws -> Bool {
        var (units, outcomes) = try await plan(send, expression, audience, numbers)
        // Side by side: a platform in trouble holds up no other.
        try await withThrowingTaskGroup(of: (Platform, [Outcome: Int]).self) { group in
            for unit in units {
                switch unit.payload {
                case .failure(let refusal):
                    outcomes[unit.platform, default: [:]][refusal.outcome, default: 0] += unit.targets.count
                    fail(send, unit.targets[0], refusal.outcome, refusal.reason)
                case .success(let payload):
                    group.addTask {
                        (unit.platform, try await self.deliver(send, payload, unit.targets))
                    }
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
}

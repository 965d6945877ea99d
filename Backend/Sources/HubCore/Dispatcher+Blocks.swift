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

    /// Resolves the audience and sends its blocks, a few at a time.
    nonisolated func dispatch(_ send: PendingSend) async throws -> SendProgress {
        let expression = try send.expression
        let audience: any Audience
        if let handles = send.handles {
            audience = HandleAudience(count: handles.count)
            if send.audience == nil { try await queue.begin(send.id, audience, now: time.now) }
        } else if let stored = send.audience,
            let restored = index.audience(serialized: stored.serialized, change: stored.change)
        {
            audience = restored
        } else {
            audience = index.resolve(send.indexKind, expression)
            try await queue.begin(send.id, audience, now: time.now)
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            var block = 0
            var after: UInt32?
            var inFlight = 0
            while true {
                try Task.checkCancellation()
                let numbers = audience.numbers(after: after, countMax: Self.blockCount)
                guard let last = numbers.last else { break }
                after = last
                if !send.finishedBlocks.contains(block) {
                    if inFlight == Self.blocksInFlightMax {
                        try await group.next()
                        inFlight -= 1
                    }
                    let index = block
                    group.addTask { try await self.run(send, expression, audience, block: index, numbers) }
                    inFlight += 1
                }
                block += 1
            }
            try await group.waitForAll()
        }
        return try await queue.finishBlocks(send.id, now: time.now)
    }

    /// Sends one block and stores what came of it.
    private nonisolated func run(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: any Audience,
        block: Int,
        _ numbers: [UInt32]
    ) async throws {
        let plan = try await plan(send, expression, audience, numbers)
        var result = try await attempt(send, plan.units, [:])
        result.add(AttemptResult(outcomes: plan.skipped))
        if !plan.missing.isEmpty {
            // What is gone has no platform any more: it counts under the format's, or the first one.
            let platform: Platform =
                if case .native(let platform) = send.notification.format { platform } else { .apns }
            result.add(.skipped, platform, count: plan.missing.count)
        }
        try await queue.finish(send.id, block: block, result)
        observer.attempted(hub: hub, result)
    }

    /// What is to be sent to some registrations.
    struct Plan {
        var units: [RenderUnit]
        /// Registrations that get nothing, although they are there.
        var skipped: OutcomeCounts
        /// Numbers without a registration.
        var missing: [UInt32]
    }

    /// Looks registrations up and renders for them.
    ///
    /// - Parameter audience: To skip repeats of a handle; nil when that was done before.
    nonisolated func plan(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: (any Audience)?,
        _ numbers: [UInt32]
    ) async throws -> Plan {
        if let handles = send.handles { return try plan(send, handles, numbers) }
        var renderer = try DispatchRenderer(
            send.notification,
            expression: expression,
            hasLegacyGoogle: senders[.gcm] != nil
        )
        let records = try await store.stored(numbers)
        var plan = Plan(units: [], skipped: [:], missing: [])
        let now = time.now
        if records.count < numbers.count {
            let found = Set(records.map(\.number))
            plan.missing = numbers.filter { !found.contains($0) }
        }
        var targets: [DispatchRenderer.UnitKey: [StoredRegistration]] = [:]
        for record in records {
            let platform = record.registration.content.handle.platform
            guard record.registration.expires > now, renderer.addresses(record.registration) else {
                plan.skipped[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            let key = renderer.key(record.registration)
            if record.hasLowerSibling, let audience, try await isRepeat(record, key, audience, &renderer) {
                plan.skipped[platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            targets[key, default: []].append(record)
        }
        plan.units = targets.compactMap { key, targets in
            targets.first.map {
                RenderUnit(
                    platform: key.platform,
                    payload: renderer.payload(key, for: $0.registration),
                    targets: targets
                )
            }
        }
        return plan
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

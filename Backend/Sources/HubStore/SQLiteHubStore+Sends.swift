package import HubCore
import SQLiteStorage
package import TidingsModels

extension SQLiteHubStore: SendQueue {
    package func enqueue(_ send: PendingSend) async throws {
        try await database.write { connection in
            if send.scheduled != nil { try connection.checkScheduledCount() }
            try connection.insert(send)
        }
    }

    package func cancel(_ id: NotificationID, now: Timestamp) async throws -> Bool {
        try await database.write { connection in
            try connection.run(
                "UPDATE send SET state = ?2, ended = ?3, live = 0 WHERE id = ?1 AND state = ?4 AND scheduled > ?3",
                .text(id.text),
                .text(NotificationState.canceled.rawValue),
                .integer(now.milliseconds),
                .text(NotificationState.scheduled.rawValue)
            )
            return connection.changedRowCount == 1
        }
    }

    package func due(
        by now: Timestamp,
        excluding excluded: Set<NotificationID>,
        countMax: Int
    ) async throws -> [NotificationID] {
        try await database.read { connection in
            let found = try connection.rows(
                "SELECT id FROM send WHERE live > 0 AND due <= ?1 ORDER BY due LIMIT ?2",
                .integer(now.milliseconds),
                .integer(countMax + excluded.count)
            ) { (row) throws(SQLiteError) in NotificationID(unchecked: row.text(0)) }
            return Array(found.filter { !excluded.contains($0) }.prefix(countMax))
        }
    }

    package func nextDue(after now: Timestamp) async throws -> Timestamp? {
        try await database.read { connection in
            try connection.row(
                "SELECT MIN(due) FROM send WHERE live > 0 AND due > ?1",
                .integer(now.milliseconds)
            ) { (row) throws(SQLiteError) in
                row.isNull(0) ? nil : Timestamp(milliseconds: row.integer(0))
            } ?? nil
        }
    }

    package func liveCounts(now: Timestamp) async throws -> (due: Int, later: Int) {
        try await database.read { connection in
            func count(_ comparison: String) throws -> Int {
                try connection.row(
                    "SELECT count(*) FROM send WHERE live > 0 AND due \(comparison) ?1",
                    .integer(now.milliseconds)
                ) { (row) throws(SQLiteError) in Int(row.integer(0)) } ?? 0
            }
            return (try count("<="), try count(">"))
        }
    }

    package func pending(_ id: NotificationID) async throws -> PendingSend? {
        try await database.read { connection in
            let found = try connection.row(
                "SELECT enqueued, format, tags, headers, body, change, audience, live, scheduled, trace, handles FROM send WHERE id = ?1 AND live > 0",
                .text(id.text)
            ) { (row) throws(SQLiteError) in
                var send = PendingSend(
                    id: id,
                    notification: try Self.notification(row, format: 1, headers: 3, body: 4),
                    tags: row.text(2),
                    enqueued: Timestamp(milliseconds: row.integer(0)),
                    scheduled: row.isNull(8) ? nil : Timestamp(milliseconds: row.integer(8)),
                    trace: TraceID(row.text(9)),
                    audience: row.isNull(6) ? nil : (serialized: row.blob(6), change: row.integer(5))
                )
                send.isDispatched = row.integer(7) == 2
                if !row.isNull(10) { send.handles = try Self.handles(row.blob(10), send.notification.format) }
                return send
            }
            guard var send = found else { return nil }
            send.finishedBlocks = Set(
                try connection.rows("SELECT block FROM finished_block WHERE send = ?1", .text(id.text)) {
                    (row) throws(SQLiteError) in Int(row.integer(0))
                }
            )
            return send
        }
    }

    private static func handles(
        _ bytes: [UInt8],
        _ format: HubNotification.Format
    ) throws(SQLiteError) -> [PlatformHandle] {
        var reader = RecordReader(bytes: bytes, position: 0)
        guard case .native(let platform) = format,
            let handles = reader.list({ reader -> PlatformHandle? in
                guard let text = reader.text(), let p256dh = reader.optional(), let auth = reader.optional()
                else {
                    return nil
                }
                let keys = p256dh.map { SubscriptionKeys(p256dh: $0, auth: auth ?? "") }
                return PlatformHandle(unchecked: text, platform: platform, keys: keys)
            })
        else { throw SQLiteError(code: 11, message: "a send has handles that this program cannot read") }
        return handles
    }

    private static func notification(
        _ row: Statement,
        format: Int,
        headers: Int,
        body: Int
    ) throws(SQLiteError) -> HubNotification {
        var reader = RecordReader(bytes: row.blob(headers), position: 0)
        guard let format = HubNotification.Format(row.text(format)),
            let list = reader.list({ reader in
                reader.text().flatMap { name in reader.text().map { RegistrationTemplate.Header(name, $0) } }
            })
        else { throw SQLiteError(code: 11, message: "a send has a record that this program cannot read") }
        return HubNotification(format: format, body: row.blob(body), headers: list)
    }

    package func begin(_ id: NotificationID, _ audience: any Audience, now: Timestamp) async throws {
        let serialized = audience.serialized
        let (count, change) = (audience.count, audience.change)
        try await database.write { connection in
            try connection.run(
                "UPDATE send SET state = ?2, started = ?3, change = ?4, audience = ?5, target_count = ?6 WHERE id = ?1",
                .text(id.text),
                .text(NotificationState.processing.rawValue),
                .integer(now.milliseconds),
                .integer(change),
                .blob(serialized),
                .integer(count)
            )
        }
    }

    package func finish(_ id: NotificationID, block: Int, _ result: AttemptResult) async throws {
        try await database.write { connection in
            try connection.run(
                "INSERT INTO finished_block (send, block) VALUES (?1, ?2)",
                .text(id.text),
                .integer(block)
            )
            try connection.add(result, to: id)
        }
    }

    package func finishBlocks(_ id: NotificationID, now: Timestamp) async throws -> SendProgress {
        try await database.write { connection in
            try connection.run(
                "UPDATE send SET live = 2, audience = NULL WHERE id = ?1",
                .text(id.text)
            )
            try connection.run("DELETE FROM finished_block WHERE send = ?1", .text(id.text))
            return try connection.progress(id, now: now)
        }
    }

    package func retries(
        _ id: NotificationID,
        dueBy: Timestamp,
        countMax: Int
    ) async throws -> [RetryTarget] {
        try await database.read { connection in
            try connection.rows(
                "SELECT number, platform, attempts, due FROM retry WHERE send = ?1 AND due <= ?2 ORDER BY due LIMIT ?3",
                .text(id.text),
                .integer(dueBy.milliseconds),
                .integer(countMax)
            ) { (row) throws(SQLiteError) in
                guard let number = UInt32(exactly: row.integer(0)),
                    let platform = Platform(rawValue: row.text(1))
                else {
                    throw SQLiteError(code: 11, message: "a retry has a record that this program cannot read")
                }
                return RetryTarget(
                    number: number,
                    platform: platform,
                    attemptCount: Int(row.integer(2)),
                    due: Timestamp(milliseconds: row.integer(3))
                )
            }
        }
    }

    package func settle(
        _ id: NotificationID,
        _ numbers: [UInt32],
        _ result: AttemptResult,
        now: Timestamp
    ) async throws -> SendProgress {
        try await database.write { connection in
            for number in numbers {
                try connection.run(
                    "DELETE FROM retry WHERE send = ?1 AND number = ?2",
                    .text(id.text),
                    .integer(Int64(number))
                )
            }
            try connection.add(result, to: id)
            return try connection.progress(id, now: now)
        }
    }

    package func record(
        _ send: PendingSend,
        _ state: NotificationState,
        _ result: AttemptResult,
        now: Timestamp
    ) async throws {
        let count = result.outcomes.values.reduce(0) { $0 + $1.values.reduce(0, +) }
        try await database.write { connection in
            try connection.insert(send)
            try connection.run(
                "UPDATE send SET started = enqueued, target_count = ?2 WHERE id = ?1",
                .text(send.id.text),
                .integer(count)
            )
            try connection.add(result, to: send.id)
            try connection.end(send.id, state, now: now)
        }
    }

    package func details(_ id: NotificationID) async throws -> NotificationDetails? {
        try await database.read { connection in
            let found = try connection.row(
                "SELECT enqueued, format, tags, headers, body, state, started, ended, target_count, trace FROM send WHERE id = ?1",
                .text(id.text)
            ) { (row) throws(SQLiteError) in
                var details = NotificationDetails(
                    id: id,
                    state: NotificationState(rawValue: row.text(5)) ?? .unknown,
                    enqueued: Timestamp(milliseconds: row.integer(0)),
                    started: row.isNull(6) ? nil : Timestamp(milliseconds: row.integer(6)),
                    ended: row.isNull(7) ? nil : Timestamp(milliseconds: row.integer(7)),
                    notification: try Self.notification(row, format: 1, headers: 3, body: 4),
                    tags: row.text(2),
                    targetCount: Int(row.integer(8))
                )
                details.trace = TraceID(row.text(9))
                return details
            }
            guard var details = found else { return nil }
            let counts = try connection.rows(
                "SELECT platform, name, count FROM outcome WHERE send = ?1",
                .text(id.text)
            ) {
                (row) throws(SQLiteError) in (row.text(0), row.text(1), Int(row.integer(2)))
            }
            for (platform, name, count) in counts {
                guard let platform = Platform(rawValue: platform) else { continue }
                details.outcomes[platform, default: [:]][
                    Outcome(rawValue: name) ?? .unknownError,
                    default: 0
                ] += count
            }
            return details
        }
    }

    package func failures(of id: NotificationID) async throws -> [TargetFailure] {
        try await database.read { try $0.failures("WHERE send = ?1 ORDER BY place", .text(id.text)) }
    }

    package func failures(from: Timestamp, until: Timestamp, countMax: Int) async throws -> [TargetFailure] {
        try await database.read {
            try $0.failures(
                "WHERE time >= ?1 AND time < ?2 ORDER BY place LIMIT ?3",
                .integer(from.milliseconds),
                .integer(until.milliseconds),
                .integer(countMax)
            )
        }
    }

    package func removeEnded(before moment: Timestamp) async throws -> Int {
        try await database.write { connection in
            try connection.run("DELETE FROM feedback WHERE time < ?1", .integer(moment.milliseconds))
            try connection.run(
                "DELETE FROM send WHERE live = 0 AND ended < ?1",
                .integer(moment.milliseconds)
            )
            return connection.changedRowCount
        }
    }
}

extension Connection {
    fileprivate func insert(_ send: PendingSend) throws(SQLiteError) {
        var headers = RecordWriter()
        headers.integer(Int64(send.notification.headers.count))
        for header in send.notification.headers {
            headers.text(header.name)
            headers.text(header.value)
        }
        try run(
            """
            INSERT INTO send (id, enqueued, format, tags, headers, body, state, live, scheduled, trace, due, handles)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8, ?9, ?10, ?11)
            """,
            .text(send.id.text),
            .integer(send.enqueued.milliseconds),
            .text(send.notification.format.text),
            .text(send.tags),
            .blob(headers.bytes),
            .blob(send.notification.body),
            .text((send.scheduled == nil ? NotificationState.enqueued : .scheduled).rawValue),
            send.scheduled.map { .integer($0.milliseconds) } ?? .null,
            .optional(send.trace?.text),
            .integer(send.begins.milliseconds),
            send.handles.map { .blob(handleRecord($0)) } ?? .null
        )
    }

    private func handleRecord(_ handles: [PlatformHandle]) -> [UInt8] {
        var writer = RecordWriter()
        writer.integer(Int64(handles.count))
        for handle in handles {
            writer.text(handle.text)
            writer.optional(handle.keys?.p256dh)
            writer.optional(handle.keys?.auth)
        }
        return writer.bytes
    }

    fileprivate func checkScheduledCount() throws {
        let isFull =
            try row(
                "SELECT 1 FROM send WHERE state = 'Scheduled' LIMIT 1 OFFSET ?1",
                .integer(SQLiteHubStore.scheduledCountMax - 1)
            ) { (row) throws(SQLiteError) in true } ?? false
        if isFull {
            throw HubError(
                .throttled,
                "\(SQLiteHubStore.scheduledCountMax) notifications are scheduled already; cancel some, or come back later.",
                retryAfter: .seconds(60)
            )
        }
    }

    fileprivate func add(_ result: AttemptResult, to id: NotificationID) throws(SQLiteError) {
        for (platform, counts) in result.outcomes {
            for (outcome, count) in counts {
                try run(
                    """
                    INSERT INTO outcome (send, platform, name, count) VALUES (?1, ?2, ?3, ?4)
                    ON CONFLICT (send, platform, name) DO UPDATE SET count = count + ?4
                    """,
                    .text(id.text),
                    .text(platform.rawValue),
                    .text(outcome.rawValue),
                    .integer(count)
                )
            }
        }
        try add(result.failures, to: id)
        for target in result.retries {
            try run(
                "INSERT INTO retry (send, number, platform, attempts, due) VALUES (?1, ?2, ?3, ?4, ?5)",
                .text(id.text),
                .integer(Int64(target.number)),
                .text(target.platform.rawValue),
                .integer(target.attemptCount),
                .integer(target.due.milliseconds)
            )
        }
    }

    private func add(_ failures: [TargetFailure], to id: NotificationID) throws(SQLiteError) {
        guard !failures.isEmpty else { return }
        let count =
            try row("SELECT count(*) FROM feedback WHERE send = ?1", .text(id.text)) {
                (row) throws(SQLiteError) in
                Int(row.integer(0))
            } ?? 0
        for failure in failures.prefix(max(0, TargetFailure.countMax - count)) {
            try run(
                """
                INSERT INTO feedback (send, time, platform, handle, registration, installation, outcome, reason)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
                """,
                .text(id.text),
                .integer(failure.time.milliseconds),
                .text(failure.handle.platform.rawValue),
                .text(failure.handle.text),
                .text(failure.registration),
                .optional(failure.installation),
                .text(failure.outcome.rawValue),
                .text(failure.reason)
            )
        }
    }

    fileprivate func failures(
        _ condition: String,
        _ arguments: SQLiteValue...
    ) throws(SQLiteError) -> [TargetFailure] {
        let statement = try statement(
            "SELECT send, time, platform, handle, registration, installation, outcome, reason FROM feedback \(condition)"
        )
        defer { statement.reset() }
        try statement.bind(arguments)
        var found: [TargetFailure] = []
        while try statement.step() {
            guard let platform = Platform(rawValue: statement.text(2)) else { continue }
            found.append(
                TargetFailure(
                    notification: NotificationID(unchecked: statement.text(0)),
                    time: Timestamp(milliseconds: statement.integer(1)),
                    handle: PlatformHandle(unchecked: statement.text(3), platform: platform),
                    registration: statement.text(4),
                    installation: statement.isNull(5) ? nil : statement.text(5),
                    outcome: Outcome(rawValue: statement.text(6)) ?? .unknownError,
                    reason: statement.text(7)
                )
            )
        }
        return found
    }

    /// Ends a send of which no target waits.
    fileprivate func progress(_ id: NotificationID, now: Timestamp) throws(SQLiteError) -> SendProgress {
        let due = try row("SELECT MIN(due) FROM retry WHERE send = ?1", .text(id.text)) {
            (row) throws(SQLiteError) in row.isNull(0) ? nil : row.integer(0)
        }
        if let due = due ?? nil {
            try run("UPDATE send SET due = ?2 WHERE id = ?1", .text(id.text), .integer(due))
            return .waits(until: Timestamp(milliseconds: due))
        }
        let targetCount =
            try row("SELECT target_count FROM send WHERE id = ?1", .text(id.text)) {
                (row) throws(SQLiteError) in Int(row.integer(0))
            } ?? 0
        let isAbandoned =
            try row(
                "SELECT 1 FROM outcome WHERE send = ?1 AND name = ?2",
                .text(id.text),
                .text(Outcome.abandoned.rawValue)
            ) { (row) throws(SQLiteError) in true } ?? false
        let state: NotificationState =
            targetCount == 0 ? .noTargetFound : isAbandoned ? .abandoned : .completed
        try end(id, state, now: now)
        return .ended(state, targetCount: targetCount)
    }

    fileprivate func end(
        _ id: NotificationID,
        _ state: NotificationState,
        now: Timestamp
    ) throws(SQLiteError) {
        try run(
            "UPDATE send SET state = ?2, ended = ?3, live = 0, audience = NULL WHERE id = ?1",
            .text(id.text),
            .text(state.rawValue),
            .integer(now.milliseconds)
        )
        try run("DELETE FROM finished_block WHERE send = ?1", .text(id.text))
    }
}

package import HubCore
import SQLiteStorage
package import TidingsModels

extension SQLiteHubStore: SendQueue {
    package func enqueue(_ send: PendingSend) async throws {
        try await database.write { try $0.insert(send) }
    }

    package func unfinished() async throws -> [PendingSend] {
        try await database.read { connection in
            let sends = try connection.rows(
                "SELECT id, enqueued, format, tags, headers, body, change, audience FROM send WHERE live = 1 ORDER BY enqueued"
            ) { (row) throws(SQLiteError) in
                PendingSend(
                    id: NotificationID(unchecked: row.text(0)),
                    notification: try Self.notification(row, format: 2, headers: 4, body: 5),
                    tags: row.text(3),
                    enqueued: Timestamp(milliseconds: row.integer(1)),
                    audience: row.isNull(7) ? nil : (serialized: row.blob(7), change: row.integer(6))
                )
            }
            return try sends.map { send in
                var send = send
                send.finishedBlocks = Set(
                    try connection.rows(
                        "SELECT block FROM finished_block WHERE send = ?1",
                        .text(send.id.text)
                    ) {
                        (row) throws(SQLiteError) in Int(row.integer(0))
                    }
                )
                return send
            }
        }
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

    package func finish(_ id: NotificationID, block: Int, _ outcomes: OutcomeCounts) async throws {
        try await database.write { connection in
            try connection.run(
                "INSERT INTO finished_block (send, block) VALUES (?1, ?2)",
                .text(id.text),
                .integer(block)
            )
            try connection.add(outcomes, to: id)
        }
    }

    package func end(_ id: NotificationID, _ state: NotificationState, now: Timestamp) async throws {
        try await database.write { try $0.end(id, state, now: now) }
    }

    package func record(
        _ send: PendingSend,
        _ state: NotificationState,
        _ outcomes: OutcomeCounts,
        now: Timestamp
    ) async throws {
        let count = outcomes.values.reduce(0) { $0 + $1.values.reduce(0, +) }
        try await database.write { connection in
            try connection.insert(send)
            try connection.run(
                "UPDATE send SET started = enqueued, target_count = ?2 WHERE id = ?1",
                .text(send.id.text),
                .integer(count)
            )
            try connection.add(outcomes, to: send.id)
            try connection.end(send.id, state, now: now)
        }
    }

    package func details(_ id: NotificationID) async throws -> NotificationDetails? {
        try await database.read { connection in
            let found = try connection.row(
                "SELECT enqueued, format, tags, headers, body, state, started, ended, target_count FROM send WHERE id = ?1",
                .text(id.text)
            ) { (row) throws(SQLiteError) in
                NotificationDetails(
                    id: id,
                    state: NotificationState(rawValue: row.text(5)) ?? .unknown,
                    enqueued: Timestamp(milliseconds: row.integer(0)),
                    started: row.isNull(6) ? nil : Timestamp(milliseconds: row.integer(6)),
                    ended: row.isNull(7) ? nil : Timestamp(milliseconds: row.integer(7)),
                    notification: try Self.notification(row, format: 1, headers: 3, body: 4),
                    tags: row.text(2),
                    targetCount: Int(row.integer(8))
                )
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

    package func removeEnded(before moment: Timestamp) async throws -> Int {
        try await database.write { connection in
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
            "INSERT INTO send (id, enqueued, format, tags, headers, body, state, live) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)",
            .text(send.id.text),
            .integer(send.enqueued.milliseconds),
            .text(send.notification.format.text),
            .text(send.tags),
            .blob(headers.bytes),
            .blob(send.notification.body),
            .text(NotificationState.enqueued.rawValue)
        )
    }

    fileprivate func add(_ outcomes: OutcomeCounts, to id: NotificationID) throws(SQLiteError) {
        for (platform, counts) in outcomes {
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

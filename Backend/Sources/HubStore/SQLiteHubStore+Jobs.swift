package import HubCore
import SQLiteStorage
package import TidingsModels

extension SQLiteHubStore: JobStore {
    package func addJob(_ job: HubJob) async throws {
        try await database.write { connection in
            let isFull =
                try connection.row(
                    "SELECT 1 FROM job WHERE is_live = 1 LIMIT 1 OFFSET ?1",
                    .integer(Int64(JobRules.liveCountMax - 1))
                ) { (row) throws(SQLiteError) in true } ?? false
            if isFull {
                throw HubError(
                    .throttled,
                    "\(JobRules.liveCountMax) jobs are waiting already; come back later.",
                    retryAfter: .seconds(60)
                )
            }
            try connection.save(job)
        }
    }

    package func saveJob(_ job: HubJob) async throws { try await database.write { try $0.save(job) } }

    package func job(_ id: String) async throws -> HubJob? {
        try await database.read { try $0.jobs("WHERE id = ?1", .text(id)).first?.job }
    }

    package func jobs() async throws -> [HubJob] {
        try await database.read {
            try $0.jobs("ORDER BY created DESC, rowid DESC LIMIT ?1", .integer(1000)).map(\.job)
        }
    }

    package func nextJob() async throws -> (job: HubJob, doneLineCount: Int)? {
        try await database.read {
            try $0.jobs("WHERE is_live = ?1 ORDER BY created, rowid LIMIT 1", .integer(1)).first
        }
    }

    package func endJob(_ job: HubJob) async throws {
        try await database.write { connection in
            try connection.save(job)
            try connection.run("DELETE FROM job_line WHERE job = ?1", .text(job.id))
        }
    }

    package func removeEndedJobs(before: Timestamp) async throws {
        try await database.write {
            try $0.run("DELETE FROM job WHERE is_live = 0 AND updated < ?1", .integer(before.milliseconds))
        }
    }

    package func importLines(
        _ job: HubJob,
        _ lines: [(number: Int, step: Result<ImportStep?, HubError>)],
        doneLineCount: Int,
        expires: Timestamp,
        now: Timestamp,
        newID: @escaping @Sendable () -> RegistrationID
    ) async throws {
        let quota = quota
        _ = try await write { connection in
            var written = Written()
            for (number, step) in lines {
                let result: Result<RegistrationID?, HubError> =
                    switch step {
                    case .failure(let error): .failure(error)
                    case .success(nil): .success(nil)
                    case .success(let step?):
                        try connection.run(step, expires: expires, now: now, newID, quota, &written)
                    }
                switch result {
                case .success(nil): continue
                case .success(let id?):
                    try connection.addLine(job.id, number, failed: false, "\(number),\(id)")
                case .failure(let error):
                    try connection.addLine(
                        job.id,
                        number,
                        failed: true,
                        "\(number),\(oneLine(error.message))"
                    )
                }
            }
            try connection.save(job)
            try connection.run(
                "UPDATE job SET done = ?2 WHERE id = ?1",
                .text(job.id),
                .integer(doneLineCount)
            )
            return written
        }
    }

    package func resultLines(
        _ job: String,
        failed: Bool,
        after: Int,
        countMax: Int
    ) async throws -> [(place: Int, text: String)] {
        try await database.read { connection in
            try connection.rows(
                "SELECT number, text FROM job_line WHERE job = ?1 AND failed = ?2 AND number > ?3 ORDER BY number LIMIT ?4",
                .text(job),
                .integer(failed ? 1 : 0),
                .integer(after),
                .integer(countMax)
            ) { (row) throws(SQLiteError) in (place: Int(row.integer(0)), text: row.text(1)) }
        }
    }
}

private func oneLine(_ text: String) -> String {
    String(decoding: text.utf8.map { $0 == 0x0D || $0 == 0x0A ? 0x20 : $0 }, as: UTF8.self)
}

extension Connection {
    fileprivate func save(_ job: HubJob) throws(SQLiteError) {
        var properties = RecordWriter()
        for pairs in [job.inputProperties, job.outputProperties] {
            properties.integer(Int64(pairs.count))
            for (name, value) in pairs.sorted(by: { $0.key < $1.key }) {
                properties.text(name)
                properties.text(value)
            }
        }
        try run(
            """
            INSERT INTO job (id, kind, status, progress, output, input, properties, failure, created, updated, is_live, done)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)
            ON CONFLICT (id) DO UPDATE SET status = ?3, progress = ?4, properties = ?7, failure = ?8, updated = ?10, is_live = ?11
            """,
            .text(job.id),
            .text(job.kind.rawValue),
            .text(job.status.rawValue),
            .integer(Int64(job.progress * 10)),
            .text(job.outputContainer),
            .optional(job.importFile),
            .blob(properties.bytes),
            .optional(job.failure),
            .integer(job.created.milliseconds),
            .integer(job.updated.milliseconds),
            .integer(job.status.isFinal ? 0 : 1)
        )
    }

    fileprivate func addLine(_ job: String, _ number: Int, failed: Bool, _ text: String) throws(SQLiteError) {
        try run(
            "INSERT INTO job_line (job, number, failed, text) VALUES (?1, ?2, ?3, ?4)",
            .text(job),
            .integer(number),
            .integer(failed ? 1 : 0),
            .text(text)
        )
    }

    fileprivate func jobs(
        _ condition: String,
        _ argument: SQLiteValue
    ) throws(SQLiteError) -> [(job: HubJob, doneLineCount: Int)] {
        try rows(
            "SELECT id, kind, status, progress, output, input, properties, failure, created, updated, done FROM job \(condition)",
            argument
        ) { (row) throws(SQLiteError) in
            var reader = RecordReader(bytes: row.blob(6), position: 0)
            let pair = { (reader: inout RecordReader) in
                reader.text().flatMap { name in reader.text().map { (name, $0) } }
            }
            guard let kind = HubJob.Kind(rawValue: row.text(1)),
                let status = HubJob.Status(rawValue: row.text(2)),
                let input = reader.list(pair), let output = reader.list(pair)
            else {
                throw SQLiteError(
                    code: 11,
                    message: "job \(row.text(0)) has a record that this program cannot read"
                )
            }
            let job = HubJob(
                id: row.text(0),
                kind: kind,
                status: status,
                progress: Double(row.integer(3)) / 10,
                outputContainer: row.text(4),
                importFile: row.isNull(5) ? nil : row.text(5),
                inputProperties: Dictionary(input) { first, _ in first },
                outputProperties: Dictionary(output) { first, _ in first },
                failure: row.isNull(7) ? nil : row.text(7),
                created: Timestamp(milliseconds: row.integer(8)),
                updated: Timestamp(milliseconds: row.integer(9))
            )
            return (job, Int(row.integer(10)))
        }
    }

    /// Does one step. What the step itself cannot do is its result; a failing store is thrown.
    fileprivate func run(
        _ step: ImportStep,
        expires: Timestamp,
        now: Timestamp,
        _ newID: () -> RegistrationID,
        _ quota: RegistrationQuota,
        _ written: inout Written
    ) throws -> Result<RegistrationID?, HubError> {
        let (id, condition, content): (RegistrationID, EntityCondition, RegistrationContent?) =
            switch step {
            case .create(let id, let content): (id ?? newID(), .none, content)
            case .update(let id, let condition, let content): (id, condition, content)
            case .upsert(let id, let content): (id, .none, content)
            case .delete(let id, let condition): (id, condition, nil)
            }
        let old = try stored(id)
        do throws(HubError) {
            if case .create = step, old != nil {
                throw HubError(.conflict, "The registration '\(id)' exists already.")
            }
            if content != nil, let slot = old?.slot {
                throw HubError(
                    .badRequest,
                    "The registration '\(id)' stands for the installation '\(slot.installation)'; change that one."
                )
            }
            try condition.check(existing: old?.registration.etag)
            if old == nil, content != nil { try quota.check() }
        } catch { return .failure(error) }
        if let content {
            let row = NewRegistration(
                id: id,
                content: content,
                expires: expires,
                isManaged: old?.isManaged ?? true,
                slot: nil
            )
            written.changes += try write(row, over: old, now: now, quota).changes
        } else if let old {
            written.changes += try remove(old).changes
        }
        return .success(id)
    }
}

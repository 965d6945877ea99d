import HubAPI
package import TidingsModels

/// What one line of an import asks for.
package enum ImportStep: Equatable, Sendable {
    /// - Parameter id: Nil takes a new one.
    case create(id: RegistrationID?, RegistrationContent)
    case update(id: RegistrationID, EntityCondition, RegistrationContent)
    case upsert(id: RegistrationID, RegistrationContent)
    case delete(id: RegistrationID, EntityCondition)
}

/// What a job demands, and what its lines mean (protocol reference, section 8.3).
package enum JobRules {
    /// Jobs of a hub that are not over.
    package static let liveCountMax = 100
    /// The longest line of an import.
    package static let lineByteCountMax = 64 << 10
    /// Lines that are stored together with the place that they reach to.
    package static let batchCount = 500

    package static func check(_ job: HubJob) throws(HubError) {
        if job.kind != .export, job.importFile == nil {
            throw HubError(
                .badRequest,
                "ImportFileUri is missing: the file with the registrations, one on each line."
            )
        }
    }

    /// Reads a line; nil for a blank one.
    /// - Throws: ``HubError`` `.badRequest`, which fails the line alone.
    package static func step(
        _ line: [UInt8],
        _ kind: HubJob.Kind,
        _ channels: ChannelRules
    ) throws(HubError) -> ImportStep? {
        if line.allSatisfy({ $0 <= 0x20 }) { return nil }
        guard line.count <= lineByteCountMax else {
            throw HubError(.badRequest, "The line is longer than \(lineByteCountMax) bytes.")
        }
        if kind == .delete {
            let (id, etag) = try RegistrationXML.readLineID(line)
            return .delete(id: try needed(id), etag.map { .etag($0) } ?? .exists)
        }
        let read = try RegistrationXML.readLine(line)
        try checkTags(read.content)
        try RegistrationRules.checkContent(read.content)
        try channels.check(read.content.handle)
        switch kind {
        case .create: return .create(id: read.id == nil ? nil : try needed(read.id), read.content)
        case .update:
            return .update(id: try needed(read.id), read.etag.map { .etag($0) } ?? .exists, read.content)
        default: return .upsert(id: try needed(read.id), read.content)
        }
    }

    private static func needed(_ id: String?) throws(HubError) -> RegistrationID {
        guard let id else { throw HubError(.badRequest, "The line has no RegistrationId.") }
        guard let known = RegistrationID(id) else {
            throw HubError(
                .badRequest,
                "RegistrationId '\(id)' is not of the form <digits>-<digits>-<digits>."
            )
        }
        return known
    }

    /// An import holds what an export wrote: also the tags that a hub made for an installation.
    private static func checkTags(_ content: RegistrationContent) throws(HubError) {
        for tag in content.tags where HubTag(system: tag.text) == nil && tag.text != content.template?.name {
            _ = try HubTag(tag.text)
        }
    }

    /// 19 digits that grow smaller with time, then a GUID, as at the original.
    package static func newID(now: Timestamp, guid: String) -> String {
        let ticks = 3_155_378_975_999_999_999 - (now.milliseconds * 10_000 + 621_355_968_000_000_000)
        return String(repeating: "0", count: max(0, 19 - String(ticks).count)) + String(ticks) + guid
    }
}

/// Where a hub's jobs survive.
package protocol JobStore: Sendable {
    /// On disk when it returns.
    /// - Throws: ``HubError`` `.throttled` for a job too many.
    func addJob(_ job: HubJob) async throws
    func job(_ id: String) async throws -> HubJob?
    /// The newest first.
    func jobs() async throws -> [HubJob]
    /// The oldest that is not over, with the number of lines that are done.
    func nextJob() async throws -> (job: HubJob, doneLineCount: Int)?
    func saveJob(_ job: HubJob) async throws
    /// Does the steps of some lines, and stores their results and the new place, in one transaction.
    ///
    /// - Parameter lines: The number of each line, from 1, with its step or why there is none.
    func importLines(
        _ job: HubJob,
        _ lines: [(number: Int, step: Result<ImportStep?, HubError>)],
        doneLineCount: Int,
        expires: Timestamp,
        now: Timestamp,
        newID: @escaping @Sendable () -> RegistrationID
    ) async throws
    /// The result lines of an import above a place, in order: of those that succeeded, or of those that failed.
    func resultLines(
        _ job: String,
        failed: Bool,
        after: Int,
        countMax: Int
    ) async throws -> [(place: Int, text: String)]
    /// Ends a job and forgets its result lines.
    func endJob(_ job: HubJob) async throws
    func removeEndedJobs(before: Timestamp) async throws
}

/// The files that jobs read and write.
package protocol JobFiles: Sendable {
    /// - Throws: ``HubError`` `.badRequest` for an address that no job may read.
    func checkInput(_ address: String) throws(HubError)
    /// - Throws: ``HubError`` `.badRequest` for an address that no job may write to.
    func checkOutput(_ address: String) throws(HubError)
    /// A copy on this machine of what stands at an address.
    func input(_ address: String, job: String) async throws -> any JobInput
    /// An empty file on this machine, which goes to the address when it is complete.
    func output(_ container: String, path: String, job: String) async throws -> any JobOutput
}

package protocol JobInput: Sendable {
    /// How many lines there are, an unfinished last one counted.
    func lineCount() async throws -> Int
    /// The next lines without their ends, from where the last call ended; empty at the end.
    func lines(countMax: Int) async throws -> [[UInt8]]
    func close() async
}

package protocol JobOutput: Sendable {
    func write(_ bytes: [UInt8]) async throws
    /// On disk, or at the other side, when it returns.
    func finish() async throws
    /// Forgets what was written.
    func discard() async
}

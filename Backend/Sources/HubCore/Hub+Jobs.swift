import HubAPI
package import TidingsModels

/// One line of an export.
enum RegistrationLine {
    static func bytes(_ registration: Registration) -> [UInt8] {
        Array(RegistrationXML.line(registration).utf8)
    }
}

extension Hub {
    /// Accepts a job; it is on disk when this returns, and begun soon after.
    package func submit(_ job: HubJob, guid: String) async throws -> HubJob {
        guard let jobs else { throw HubError(.notFound, "This hub has no jobs.") }
        try JobRules.check(job)
        try jobs.files.checkOutput(job.outputContainer)
        if let file = job.importFile { try jobs.files.checkInput(file) }
        var new = HubJob(
            kind: job.kind,
            outputContainer: job.outputContainer,
            importFile: job.kind == .export ? nil : job.importFile,
            inputProperties: job.inputProperties
        )
        new.id = JobRules.newID(now: now, guid: guid)
        (new.created, new.updated) = (now, now)
        try await jobs.store.addJob(new)
        await jobs.runner.wake()
        return new
    }

    package func job(_ id: String) async throws -> HubJob {
        guard let job = try await jobs?.store.job(id) else {
            throw HubError(.notFound, "There is no job '\(id)'.")
        }
        return job
    }

    package func allJobs() async throws -> [HubJob] { try await jobs?.store.jobs() ?? [] }
}

/// What a hub needs for its jobs.
package struct HubJobs: Sendable {
    package var store: any JobStore
    package var files: any JobFiles
    package var runner: JobRunner

    package init(store: any JobStore, files: any JobFiles, runner: JobRunner) {
        self.store = store
        self.files = files
        self.runner = runner
    }
}

package import TidingsModels

/// Does the jobs of a hub, one after the other. After a crash a job goes on behind its last stored lines; an export begins anew.
package actor JobRunner {
    private let store: any JobStore & RegistrationStore
    private let files: any JobFiles
    private let time: any TimeSource
    private let random: InjectedRandom
    private let hub: String
    private let observer: any DispatchObserver
    private let channels: ChannelRules
    /// Asked for at each batch, since it may change.
    private let expiry: @Sendable () -> Timestamp
    private var running: Task<Void, Never>?
    private var isStopping = false
    private var hasMore = false

    package init(
        hub: String,
        store: any JobStore & RegistrationStore,
        files: any JobFiles,
        time: any TimeSource,
        random: InjectedRandom,
        observer: any DispatchObserver,
        channels: ChannelRules,
        expiry: @escaping @Sendable () -> Timestamp
    ) {
        self.hub = hub
        self.store = store
        self.files = files
        self.time = time
        self.random = random
        self.observer = observer
        self.channels = channels
        self.expiry = expiry
    }

    /// Takes up what is to be done; call it at the start and after each new job.
    package func wake() {
        hasMore = true
        guard running == nil, !isStopping else { return }
        // `stop` waits for it.
        running = Task { await self.work() }
    }

    /// Stops after the lines under way; the rest stays on disk.
    package func stop() async {
        isStopping = true
        running?.cancel()
        await running?.value
    }

    private func work() async {
        while hasMore, !isStopping {
            hasMore = false
            do {
                while !isStopping, let (job, doneLineCount) = try await store.nextJob() {
                    try await run(job, doneLineCount)
                }
            } catch is CancellationError {
                break
            } catch {
                // The store is in trouble: the next job or the next start tries again.
                observer.queueFailed(hub: hub, reason: "jobs: \(error)")
            }
        }
        running = nil
    }

    private func run(_ job: HubJob, _ doneLineCount: Int) async throws {
        var job = job
        (job.status, job.updated) = (.running, time.now)
        try await store.saveJob(job)
        let folder = "\(hub)/\(job.id)"
        do {
            if job.kind == .export {
                try await export(&job, folder)
            } else {
                try await runImport(&job, folder, doneLineCount)
            }
            (job.status, job.progress) = (.completed, 100)
        } catch is CancellationError {
            throw CancellationError()
        } catch let error as HubError {
            (job.status, job.failure) = (.failed, error.message)
        } catch {
            (job.status, job.failure) = (.failed, String(describing: error))
        }
        job.updated = time.now
        try await store.endJob(job)
    }

    // MARK: Export

    private func export(_ job: inout HubJob, _ folder: String) async throws {
        let path = folder + "/Output.txt"
        let output = try await files.output(job.outputContainer, path: path, job: job.id)
        do {
            let total = max(1, try await store.registrationCount().registrations)
            var done = 0
            var after: UInt32?
            repeat {
                try Task.checkCancellation()
                let page = try await store.registrations(.all, after: after, countMax: 1000, now: time.now)
                var bytes: [UInt8] = []
                for registration in page.registrations {
                    bytes += RegistrationLine.bytes(registration)
                    bytes.append(0x0A)
                }
                try await output.write(bytes)
                done += page.registrations.count
                after = page.next
                try await tell(&job, Double(done) * 100 / Double(total))
            } while after != nil
            try await output.finish()
        } catch {
            await output.discard()
            throw error
        }
        job.outputProperties = ["OutputFilePath": path]
    }

    private func tell(_ job: inout HubJob, _ progress: Double) async throws {
        job.progress = min(99.9, progress)
        job.updated = time.now
        try await store.saveJob(job)
    }

    // MARK: Import

    private func runImport(_ job: inout HubJob, _ folder: String, _ doneLineCount: Int) async throws {
        guard let address = job.importFile else { throw HubError(.badRequest, "ImportFileUri is missing.") }
        let input = try await files.input(address, job: job.id)
        do { try await read(input, &job, doneLineCount) } catch {
            await input.close()
            throw error
        }
        await input.close()
        let (output, failed) = (folder + "/Output.txt", folder + "/Failed.txt")
        try await writeResults(job, output, failed: false)
        try await writeResults(job, failed, failed: true)
        job.outputProperties = ["OutputFilePath": output, "FailedFilePath": failed]
    }

    private func read(_ input: any JobInput, _ job: inout HubJob, _ doneLineCount: Int) async throws {
        let total = max(1, try await input.lineCount())
        var number = 0
        while true {
            try Task.checkCancellation()
            let lines = try await input.lines(countMax: JobRules.batchCount)
            if lines.isEmpty { return }
            let first = number
            number += lines.count
            // Stored before a crash.
            if number <= doneLineCount { continue }
            let (kind, channels) = (job.kind, channels)
            let steps: [(number: Int, step: Result<ImportStep?, HubError>)] = lines.enumerated().compactMap {
                index,
                line in
                let place = first + index + 1
                guard place > doneLineCount else { return nil }
                return (place, Result { () throws(HubError) in try JobRules.step(line, kind, channels) })
            }
            job.progress = min(99.9, Double(number) * 100 / Double(total))
            job.updated = time.now
            let random = random
            try await store.importLines(job, steps, doneLineCount: number, expires: expiry(), now: time.now) {
                var random = random
                return RegistrationID.random(using: &random)
            }
        }
    }

    private func writeResults(_ job: HubJob, _ path: String, failed: Bool) async throws {
        let output = try await files.output(job.outputContainer, path: path, job: job.id)
        do {
            var place = 0
            while true {
                let lines = try await store.resultLines(job.id, failed: failed, after: place, countMax: 5000)
                guard let last = lines.last else { break }
                place = last.place
                try await output.write(Array(lines.map { $0.text + "\n" }.joined().utf8))
            }
            try await output.finish()
        } catch {
            await output.discard()
            throw error
        }
    }
}

import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// `tidings export` and `tidings import`.
extension OperatorCommands {
    private static let containerHelp = """
          --container URL       a container's signed address, for example of a storage account; without it one of the hub's own, which takes a
                                connection string of the namespace

        """
    private static let pollInterval = Duration.milliseconds(250)

    static func export(_ arguments: [String]) async -> ExitCode {
        let usage =
            "usage: tidings export FILE [options]\n\nWrites every registration to FILE, one on each line.\n\n"
            + containerHelp
        return await attempt(usage, arguments, known: ["container"]) { options in
            let path = try file(options)
            let client = try client(options)
            let container = try await container(options, client)
            let job = try await finished(client, HubJob(kind: .export, outputContainer: container))
            let bytes = try await output(client, container, job, "OutputFilePath")
            try Files.replace(path, with: bytes)
            let count = bytes.reduce(0) { $0 + ($1 == 0x0A ? 1 : 0) }
            let result = JSONValue.object([
                "job": .string(job.id), "registrations": .number(count), "file": .string(path),
            ])
            Console.print(options.has("json") ? result.text : "\(count) registrations written to \(path)")
            return .success
        }
    }

    static func `import`(_ arguments: [String]) async -> ExitCode {
        let usage = """
            usage: tidings import FILE [--mode create|update|upsert|delete] [--failed FILE] [options]

            Reads registrations from FILE, one on each line, as 'tidings export' and the original write them. Exit code 1 if a line failed.

              --mode MODE           create (default) refuses ids that are there; update takes only those; upsert takes both; delete
              --failed FILE         where to write the numbers and reasons of lines that failed

            """
        return await attempt(usage + containerHelp, arguments, known: ["mode", "failed", "container"]) {
            options in
            let modes: [String: HubJob.Kind] = [
                "create": .create, "update": .update, "upsert": .upsert, "delete": .delete,
            ]
            guard let kind = modes[options["mode"] ?? "create"] else {
                throw ConfigurationError("--mode is create, update, upsert or delete")
            }
            let path = try file(options)
            guard let bytes = try Files.read(path, byteCountMax: 1 << 30) else {
                throw ConfigurationError("the file \(path) does not exist")
            }
            let client = try client(options)
            let container = try await container(options, client)
            let name = "import-\(Hex.encode(Digests.random(8))).txt"
            try await client.upload(container, name, bytes)
            let input = try HubClient.file(container, name).description
            let job = try await finished(
                client,
                HubJob(kind: kind, outputContainer: container, importFile: input)
            )
            let done = lines(try await output(client, container, job, "OutputFilePath"))
            let failed = lines(try await output(client, container, job, "FailedFilePath"))
            if let path = options["failed"] {
                try Files.replace(path, with: Array(failed.map { $0 + "\n" }.joined().utf8))
            }
            if options.has("json") {
                Console.print(
                    JSONValue.object([
                        "job": .string(job.id), "done": .number(done.count), "failed": .number(failed.count),
                        "failures": .array(failed.prefix(100).map { .string($0) }),
                    ]).text
                )
            } else {
                Console.print("\(done.count) lines done, \(failed.count) failed")
                for line in failed.prefix(20) { Console.print("  line \(line)") }
            }
            return failed.isEmpty ? .success : .failure
        }
    }

    private static func file(_ options: OptionReader) throws -> String {
        try options.expect(atMost: 1)
        guard let path = options.rest.first else { throw ConfigurationError("FILE is missing") }
        return path
    }

    private static func container(_ options: OptionReader, _ client: HubClient) async throws -> String {
        if let given = options["container"] { return given }
        return try await client.makeContainer("tidings-\(Hex.encode(Digests.random(8)))")
    }

    /// Submits a job and tells its progress on standard error until it is over.
    private static func finished(_ client: HubClient, _ job: HubJob) async throws -> HubJob {
        var job = try await client.submit(job)
        var told = -1
        while !job.status.isFinal {
            let progress = Int(job.progress)
            if progress != told { Console.error("\(job.kind.rawValue) \(job.id): \(progress) %") }
            told = progress
            // The protocol has no other way to learn of the end.
            try await Task.sleep(for: pollInterval)
            job = try await client.job(job.id)
        }
        if let failure = job.failure { throw HubError(.badGateway, "The job \(job.id) failed: \(failure)") }
        return job
    }

    private static func output(
        _ client: HubClient,
        _ container: String,
        _ job: HubJob,
        _ name: String
    ) async throws -> [UInt8] {
        guard let path = job.outputProperties[name] else {
            throw HubError(.badGateway, "The job \(job.id) tells no \(name).")
        }
        return try await client.download(container, path)
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
}

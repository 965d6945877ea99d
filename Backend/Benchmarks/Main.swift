import Foundation
import Glibc
import ProcessLifecycle

/// First figures, each against a peer in the same run. The programs measured are processes of their own, so that CPU time
/// and memory are theirs alone. Everything stays on loopback, is bounded in count and time, and is stopped at the end.
@main
enum TidingsBenchmarks {
    private static let usage = """
        usage: tidings-benchmarks [health] [idle] [upserts] [reads] [decoding] [apns] [webpush] [autopush] [options]

          health             server CPU time per GET /-/health, against nginx (needs nginx and wrk)
          idle               resident bytes per idle device connection, plain and TLS, against nginx keep-alive
          upserts            durable registration upserts per second, against bare SQLite and PostgreSQL (needs pgbench)
          reads              server CPU time per GET of an installation, against nginx and a file
          decoding           installations (JSON) and registrations (Atom) decoded per CPU-second, against Foundation
          apns               APNs pushes per CPU-second of the sender, against h2load and aioapns
          webpush            Web Push messages encrypted, and sent, per CPU-second, against openssl speed and pywebpush
          autopush           server CPU time per Web Push message to a connected device, against a bare POST (needs h2load)
          --rounds N         rounds of health, reads, apns, webpush and autopush; default 3
          --seconds N        length of a round; default 3
          --pushes N         pushes of a round of apns, webpush and autopush; default 20000
          --connections N    connections of idle; default 5000
        """

    private static let all = [
        "health", "idle", "upserts", "reads", "decoding", "apns", "webpush", "autopush",
    ]

    static func main() async {
        do {
            let options = try OptionReader(
                Array(CommandLine.arguments.dropFirst()),
                known: ["help!", "rounds", "seconds", "connections", "pushes", "one-key!"]
            )
            if options.has("help") { return Console.print(usage) }
            if try await send(options) { return }
            let rounds = try count(options, "rounds", default: 3, in: 1...20)
            let seconds = try count(options, "seconds", default: 3, in: 1...60)
            let connections = try count(options, "connections", default: 5000, in: 100...9000)
            let pushes = try count(options, "pushes", default: 20_000, in: 1000...1_000_000)
            for name in options.rest.isEmpty ? all : options.rest {
                switch name {
                case "health": try await HealthBenchmark(roundCount: rounds, secondCount: seconds).run()
                case "idle": try await IdleBenchmark(connectionCount: connections).run()
                case "upserts": try await UpsertBenchmark(secondCount: seconds).run()
                case "reads": try await ReadBenchmark(roundCount: rounds, secondCount: seconds).run()
                case "decoding": try DecodingBenchmark(secondCount: seconds).run()
                case "apns": try await APNsBenchmark(roundCount: rounds, pushCount: pushes).run()
                case "webpush":
                    try await WebPushBenchmark(roundCount: rounds, secondCount: seconds, pushCount: pushes)
                        .run()
                case "autopush": try await AutopushBenchmark(roundCount: rounds, messageCount: pushes).run()
                default: throw BenchmarkError("there is no benchmark '\(name)'\n\(usage)")
                }
            }
        } catch {
            Console.error("tidings-benchmarks: \(error)")
            Glibc.exit(1)
        }
    }

    /// `send-apns FILE` and `send-webpush FILE`: a sender that a benchmark starts, to measure it alone. Prints its cost in JSON.
    private static func send(_ options: OptionReader) async throws -> Bool {
        guard options.rest.count == 2, let kind = options.rest.first, kind.hasPrefix("send-") else {
            return false
        }
        let task = Data(try Files.read(options.rest[1]) ?? [])
        let cost: Data
        switch kind {
        case "send-apns":
            let task = try JSONDecoder().decode(APNsTask.self, from: task)
            cost = try JSONEncoder().encode(try await APNsLoad(task).run(count: task.count))
        case "send-webpush":
            let task = try JSONDecoder().decode(WebPushTask.self, from: task)
            let load = WebPushLoad(task: task, usesOneKeyPerSend: options.has("one-key"))
            cost = try JSONEncoder().encode(try await load.run())
        default: return false
        }
        Console.print(String(decoding: cost, as: UTF8.self))
        return true
    }

    private static func count(
        _ options: OptionReader,
        _ name: String,
        default fallback: Int,
        in range: ClosedRange<Int>
    ) throws -> Int {
        guard let text = options[name] else { return fallback }
        guard let value = Int(text), range.contains(value) else {
            throw BenchmarkError("--\(name) takes a number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }
}

struct BenchmarkError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

import EventLoops
import Glibc

/// Runs the operator's command for each event, one after another and in order. Nothing else waits for it.
struct EventCommand: Sendable {
    /// Events that wait for a slow command; more are skipped.
    static let waitingCountMax = 1000

    private let events: AsyncStream<DeviceEvent>.Continuation
    private let worker: Task<Void, Never>

    /// - Parameter timeLimit: In whole seconds; a command that runs longer is ended.
    init(_ command: String, timeLimit: Int = 60) {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DeviceEvent.self,
            bufferingPolicy: .bufferingOldest(Self.waitingCountMax)
        )
        events = continuation
        let limited = Self.limited(command, timeLimit)
        // Ends with the stream; ``finish(within:)`` waits for it.
        worker = Task { for await event in stream { await Self.run(limited, event) } }
    }

    /// False when too many wait already.
    func submit(_ event: DeviceEvent) -> Bool {
        if case .dropped = events.yield(event) { false } else { true }
    }

    /// Lets what waits run, for so long; a command that hangs is then left to its own time limit.
    func finish(within limit: Duration = .seconds(10)) async {
        events.finish()
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        // A task group would wait for both.
        Task { [worker] in
            await worker.value
            end.finish()
        }
        let timer = Task {
            try? await Task.sleep(for: limit)
            end.finish()
        }
        for await _ in ended {}
        worker.cancel()
        timer.cancel()
    }

    /// Waits for the command; its exit status is its own business. The JSON goes to its standard input.
    private static func run(_ command: String, _ event: DeviceEvent) async {
        if Task.isCancelled { return }
        let line = event.line + "\n"
        _ = try? await EventLoopGroup.shared.next().runBlocking {
            // popen(3) starts /bin/sh with a pipe to its standard input; timeout(1) ends a command and what it started.
            guard let pipe = popen(command, "w") else { return }
            _ = line.withCString { fputs($0, pipe) }
            pclose(pipe)
        }
    }

    private static func limited(_ command: String, _ seconds: Int) -> String {
        let quoted = command.split(separator: "'", omittingEmptySubsequences: false).joined(
            separator: "'\\''"
        )
        return "exec timeout -k 5 \(seconds) /bin/sh -c '\(quoted)'"
    }
}

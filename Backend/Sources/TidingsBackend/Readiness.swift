import SQLiteStorage
import Synchronization

/// Whether a process can take work: not when it drains, and not when a database does not answer.
final class Readiness: Sendable {
    private struct State {
        var isDraining = false
        var databases: [(name: String, Database)] = []
        /// Databases that were asked and have not answered.
        var asked: [String: ContinuousClock.Instant] = [:]
    }

    /// A database that takes longer to commit nothing is in trouble.
    private static let patience = Duration.seconds(2)
    private let state = Mutex(State())

    func add(_ name: String, _ database: Database) {
        state.withLock { $0.databases.append((name, database)) }
    }

    func remove(_ name: String) {
        state.withLock { $0.databases.removeAll { $0.name == name } }
    }

    func drain() { state.withLock { $0.isDraining = true } }

    /// What stands against it, for people; empty when it is ready.
    func problems() async -> [String] {
        let (isDraining, databases) = state.withLock { ($0.isDraining, $0.databases) }
        if isDraining { return ["stopping"] }
        var problems: [String] = []
        for (name, database) in databases {
            if let problem = await problem(name, database) { problems.append(problem) }
        }
        return problems
    }

    /// Goes through the queue of writes, so that it waits for what is in front of it.
    private func problem(_ name: String, _ database: Database) async -> String? {
        let isAsked = state.withLock { state in
            if state.asked[name] != nil { return true }
            state.asked[name] = .now
            return false
        }
        // One question at a time: a database that hangs is not asked again and again.
        if isAsked { return late(name) }
        let (answers, answer) = AsyncStream.makeStream(of: String?.self)
        // Ends with the write, which may be long after the answer to whoever asks.
        Task {
            var problem: String?
            do { try await database.write { _ in } } catch {
                problem = "the database \(name) fails: \(error)"
            }
            // Before the answer: who has it and asks again begins anew.
            state.withLock { $0.asked[name] = nil }
            answer.yield(problem)
        }
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            answer.yield(late(name))
        }
        defer { timer.cancel() }
        for await problem in answers { return problem }
        return nil
    }

    /// Nil when the question is younger than ``patience``: then its own asker tells.
    private func late(_ name: String) -> String? {
        guard let began = state.withLock({ $0.asked[name] }), .now - began >= Self.patience else {
            return nil
        }
        return "the database \(name) has not answered for \((.now - began).components.seconds) seconds"
    }
}

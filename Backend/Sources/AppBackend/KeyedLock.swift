import Synchronization

/// Lets one task at a time work on each key; others wait in order. Keys are taken in sorted order, so that two tasks that
/// want several never wait for each other.
final class KeyedLock: Sendable {
    private struct State {
        /// Who waits for a held key; a key without an entry is free.
        var waiters: [String: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let state = Mutex(State())

    func withLock<Value: Sendable>(_ keys: [String], _ body: () async throws -> Value) async throws -> Value {
        let sorted = Set(keys).sorted()
        for key in sorted { await acquire(key) }
        defer { for key in sorted { release(key) } }
        return try await body()
    }

    private func acquire(_ key: String) async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.waiters[key] != nil else {
                    state.waiters[key] = []
                    return true
                }
                state.waiters[key]?.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func release(_ key: String) {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard var waiting = state.waiters[key], !waiting.isEmpty else {
                state.waiters[key] = nil
                return nil
            }
            let next = waiting.removeFirst()
            state.waiters[key] = waiting
            return next
        }
        next?.resume()
    }
}

import Synchronization

/// Who has received which push, and how often.
final class Tally: Sendable {
    private struct State {
        /// By text, then by target.
        var counts: [String: [String: Int]] = [:]
        var repeatCount = 0
        var waiter: (text: String, count: Int, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    /// A target has received or shown a push.
    func record(_ target: String, _ text: String) {
        let reached = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.counts[text, default: [:]][target, default: 0] += 1
            guard let waiter = state.waiter, state.counts[waiter.text]?.count ?? 0 >= waiter.count else {
                return nil
            }
            state.waiter = nil
            return waiter.continuation
        }
        reached?.resume()
    }

    /// A target was sent a message again that it had: it drops it.
    func recordRepeat() { state.withLock { $0.repeatCount += 1 } }

    var repeats: Int { state.withLock { $0.repeatCount } }
    func received(_ text: String) -> Int { state.withLock { $0.counts[text]?.count ?? 0 } }

    /// Targets that have a push of this text more than once; over all texts without one.
    func shownTwice(_ text: String? = nil) -> Int {
        state.withLock { state in
            state.counts.filter { text == nil || $0.key == text }.values.reduce(0) {
                $0 + $1.values.count { $0 > 1 }
            }
        }
    }

    /// Returns when so many targets have the push, or after the limit; true in the first case.
    func reaches(_ count: Int, _ text: String, within limit: Duration) async -> Bool {
        let timer = Task {
            try? await Task.sleep(for: limit)
            self.giveUp()
        }
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.counts[text]?.count ?? 0 >= count { return true }
                state.waiter = (text, count, continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
        timer.cancel()
        return received(text) >= count
    }

    private func giveUp() {
        let waiting = state.withLock { state in
            defer { state.waiter = nil }
            return state.waiter?.continuation
        }
        waiting?.resume()
    }
}

import ProcessLifecycle
import Synchronization
public import TidingsModels

/// The machine's clock with an offset that a test moves forward: what sleeps wakes when its time has come.
public final class WorldClock: TimeSource {
    private struct State {
        var offset = Duration.zero
        var advanceCount = 0
        var waiters: [Int: CheckedContinuation<Void, Never>] = [:]
        var next = 0
    }

    private let state = Mutex(State())
    private let system = SystemTimeSource()

    /// Where a clock stands that does not run.
    private let start: Timestamp?

    /// A clock that shows the machine's time, or one that stands still at `start` but for ``advance(by:)``.
    public init(standingAt start: Timestamp? = nil) { self.start = start }

    /// The machine's time, or the start, plus what ``advance(by:)`` added.
    public var now: Timestamp { (start ?? system.now) + state.withLock { $0.offset } }

    /// Moves the time forward and wakes every sleeper, who looks whether its time has come.
    public func advance(by duration: Duration) {
        let waiters = state.withLock { state in
            state.offset += duration
            state.advanceCount += 1
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume() }
    }

    /// Returns when ``now`` has reached `deadline`.
    public func sleep(until deadline: Timestamp) async throws {
        while true {
            // Before the look at the time: an advance behind it is not missed.
            let seen = state.withLock { $0.advanceCount }
            let left = deadline - now
            guard left > .zero else { break }
            try Task.checkCancellation()
            await withTaskGroup(of: Void.self) { group in
                group.addTask { try? await Task.sleep(for: left) }
                group.addTask { await self.advanced(since: seen) }
                await group.next()
                group.cancelAll()
            }
        }
        try Task.checkCancellation()
    }

    /// Returns at the first advance after the first `count` ones, or when the task is cancelled.
    private func advanced(since count: Int) async {
        let ticket = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.advanceCount != count { return true }
                    state.waiters[ticket] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiters.removeValue(forKey: ticket) }?.resume()
        }
    }
}

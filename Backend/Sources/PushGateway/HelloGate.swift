import Synchronization

/// How many hellos look into the mailbox at once; the others wait in their order.
///
/// After a restart every device comes back within seconds. Their look-ups would stand in the mailbox's queue before what is
/// asked for pushes; here they wait outside of it. What waits is bounded by the connections.
package final class HelloGate: Sendable {
    /// Enough to keep both of the mailbox's readers busy.
    package static let countMax = 32

    /// A place among the hellos under way; it is free again when the last who holds it lets go.
    final class Place: Sendable {
        private let gate: HelloGate
        fileprivate init(_ gate: HelloGate) { self.gate = gate }
        deinit { gate.leave() }
    }

    private struct State {
        var underWayCount = 0
        /// By ticket: those that are not here any more withdrew.
        var waiting: [Int: @Sendable (Place) -> Void] = [:]
        /// The ticket that is next in turn, and the next to be given out.
        var first = 0
        var next = 0
    }
    private let state = Mutex(State())

    init() {}

    package var counts: (waiting: Int, underWay: Int) {
        state.withLock { ($0.waiting.count, $0.underWayCount) }
    }

    /// Calls `admit` once, at once or when it is its turn, on any thread.
    /// - Returns: A ticket to withdraw with.
    func enter(_ admit: @escaping @Sendable (Place) -> Void) -> Int {
        let (ticket, isAdmitted) = state.withLock { state in
            let ticket = state.next
            state.next += 1
            // While anybody waits there is no place.
            if state.underWayCount < Self.countMax {
                state.underWayCount += 1
                return (ticket, true)
            }
            state.waiting[ticket] = admit
            return (ticket, false)
        }
        if isAdmitted { admit(Place(self)) }
        return ticket
    }

    /// Leaves the queue; nothing for who was admitted.
    func withdraw(_ ticket: Int) { state.withLock { $0.waiting[ticket] = nil } }

    private func leave() {
        let admit = state.withLock { state -> (@Sendable (Place) -> Void)? in
            while !state.waiting.isEmpty {
                defer { state.first += 1 }
                if let admit = state.waiting.removeValue(forKey: state.first) { return admit }
            }
            state.first = state.next
            state.underWayCount -= 1
            return nil
        }
        admit?(Place(self))
    }
}

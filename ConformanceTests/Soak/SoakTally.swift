import Synchronization
import TidingsModels

/// What the load has done and seen.
final class SoakTally: Sendable {
    struct Sent {
        let id: NotificationID
        let isMute: Bool
    }

    private struct State {
        var sent: [Sent] = []
        var mute: [Sent] = []
        var next = 0
        var sentCount = 0
        var registrationCount = 0
        var muteConnectCount = 0
        var successCount = 0
        var outcomes: [String: Int] = [:]
        var problems: [String: Int] = [:]
    }

    private let state = Mutex(State())

    func sent(_ id: NotificationID, isMute: Bool) {
        state.withLock {
            $0.sentCount += 1
            // Pushes to full mailboxes are tried again for four minutes: they are asked for at the end.
            if isMute {
                $0.mute.append(Sent(id: id, isMute: true))
            } else {
                $0.sent.append(Sent(id: id, isMute: false))
            }
        }
    }

    enum Next {
        case sent(Sent)
        /// None now; one may come.
        case later
        case over
    }

    /// The next send whose outcome is not known.
    func next(isLast: Bool) -> Next {
        state.withLock { state in
            guard state.next < state.sent.count else {
                if !isLast { return .later }
                return state.mute.popLast().map { .sent($0) } ?? .over
            }
            let sent = state.sent[state.next]
            state.next += 1
            if state.next > 4096 {
                state.sent.removeFirst(state.next)
                state.next = 0
            }
            return .sent(sent)
        }
    }

    func ended(_ sent: Sent, _ details: NotificationDetails) {
        state.withLock { state in
            guard details.state.isFinal else {
                return state.problems["a send is still \(details.state.rawValue)", default: 0] += 1
            }
            for counts in details.outcomes.values {
                for (outcome, count) in counts {
                    state.outcomes[(sent.isMute ? "mute " : "") + outcome.rawValue, default: 0] += count
                    if outcome == .success, !sent.isMute { state.successCount += count }
                }
            }
        }
    }

    func registered() { state.withLock { $0.registrationCount += 1 } }
    func muteConnects(_ count: Int) { state.withLock { $0.muteConnectCount = count } }
    func count(_ problem: String) { state.withLock { $0.problems[problem, default: 0] += 1 } }

    /// Sends whose outcome is not known.
    var openCount: Int { state.withLock { $0.sent.count - $0.next } }
    var sentCount: Int { state.withLock { $0.sentCount } }
    var registrationCount: Int { state.withLock { $0.registrationCount } }
    var muteConnectCount: Int { state.withLock { $0.muteConnectCount } }
    var successCount: Int { state.withLock { $0.successCount } }
    var problems: [String: Int] { state.withLock { $0.problems } }
    var outcomes: String {
        state.withLock { $0.outcomes }.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            .joined(separator: ", ")
    }
}

/// A number that tasks share.
final class Count: Sendable {
    private let number = Atomic<Int>(0)
    var value: Int { number.load(ordering: .relaxed) }
    func add(_ step: Int) { number.wrappingAdd(step, ordering: .relaxed) }
}

import Synchronization
import TidingsModels

/// What the load has done and seen.
final class SoakTally: Sendable {
    struct Sent {
        let id: NotificationID
        let isMute: Bool
        let at: ContinuousClock.Instant
    }

    private struct State {
        var sent: [Sent] = []
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
            $0.sent.append(Sent(id: id, isMute: isMute, at: .now))
        }
    }

    /// The next send whose outcome is due. Nil when there is none left and no more will come; a nil value when one will.
    func next(before age: Duration) -> (value: Sent?, Void)? {
        state.withLock { state in
            guard state.next < state.sent.count else { return age == .zero ? nil : (nil, ()) }
            let sent = state.sent[state.next]
            guard age == .zero || .now - sent.at >= age else { return (nil, ()) }
            state.next += 1
            if state.next > 4096 {
                state.sent.removeFirst(state.next)
                state.next = 0
            }
            return (sent, ())
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

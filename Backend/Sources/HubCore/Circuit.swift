package import TidingsModels

/// Whether a push service is worth asking (the circuit breaker pattern). Values alone: no clock, no lock.
///
/// While most answers are trouble of the service's, asking it costs each target one of its tries. So the circuit opens: targets wait, their
/// tries untouched. When its time is over one target goes first, and what the service says of it decides for all.
package struct Circuit: Sendable, Equatable {
    package enum State: Sendable, Equatable {
        case closed
        case open(until: Timestamp)
        /// One target is under way; nobody follows until its answer, or until a moment.
        case probing(until: Timestamp)
    }

    /// What may be sent now.
    package enum Admission: Sendable, Equatable {
        case all
        case one
        case none(until: Timestamp)
    }

    package enum Change: Sendable, Equatable { case opened(until: Timestamp), closed }

    /// Answers are counted for so long, then anew.
    static let window = Duration.seconds(10)
    /// Fewer answers prove nothing.
    static let answerCountMin = 20
    static let openMin = Duration.seconds(5)
    static let openMax = Duration.seconds(60)
    /// A platform that asks for more is believed up to a send's time budget.
    static let askedMax = Dispatcher.timeBudget
    /// Longer than any request: after so long a probe is taken for lost.
    static let probeMax = Duration.seconds(60)
    /// How soon the others look again while the probe is under way.
    static let probeWait = Duration.seconds(1)

    package private(set) var state = State.closed
    /// What the service said last when it was in trouble.
    package private(set) var reason = ""
    package private(set) var outcome = Outcome.pnsUnavailable
    private var windowEnd: Timestamp?
    private var troubleCount = 0
    private var answerCount = 0
    /// How often in a row it opened.
    private var openCount = 0

    package init() {}

    /// Nothing is known that the next answer would not tell.
    var isIdle: Bool { state == .closed && troubleCount == 0 }

    package mutating func admission(now: Timestamp) -> Admission {
        switch state {
        case .closed: return .all
        case .open(let until) where now < until: return .none(until: until)
        case .probing(let until) where now < until: return .none(until: min(until, now + Self.probeWait))
        case .open, .probing:
            state = .probing(until: now + Self.probeMax)
            return .one
        }
    }

    /// Takes note of answers.
    ///
    /// - Parameters:
    ///   - troubles: Those that blame the service, with the wait that it asked for.
    ///   - otherCount: The rest, refusals among them: the service works.
    package mutating func record(
        _ troubles: [(outcome: Outcome, reason: String, asked: Duration?)],
        otherCount: Int,
        now: Timestamp
    ) -> Change? {
        if let last = troubles.last { (outcome, reason) = (last.outcome, last.reason) }
        switch state {
        // They were under way when it opened.
        case .open: return nil
        case .probing:
            guard let trouble = troubles.last else {
                guard otherCount > 0 else { return nil }
                self = Circuit()
                return .closed
            }
            return open(trouble.asked, now)
        case .closed:
            if windowEnd.map({ now >= $0 }) ?? true {
                (troubleCount, answerCount) = (0, 0)
                windowEnd = now + Self.window
            }
            troubleCount += troubles.count
            answerCount += troubles.count + otherCount
            guard answerCount >= Self.answerCountMin, troubleCount * 2 >= answerCount else { return nil }
            return open(troubles.compactMap(\.asked).max(), now)
        }
    }

    private mutating func open(_ asked: Duration?, _ now: Timestamp) -> Change {
        let own = min(Self.openMax, Self.openMin * (1 << min(openCount, 8)))
        let until = now + max(own, min(asked ?? .zero, Self.askedMax))
        openCount += 1
        (troubleCount, answerCount, windowEnd) = (0, 0, nil)
        state = .open(until: until)
        return .opened(until: until)
    }
}

extension TargetAnswer {
    /// The service's trouble, not the target's: nobody else would fare better.
    var trouble: (outcome: Outcome, reason: String, asked: Duration?)? {
        guard case .retry(let outcome, let reason, let after) = self else { return nil }
        switch outcome {
        // A limit may be one device's (FCM does not say whose): who is throttled waits, and the others go on.
        case .pnsUnavailable, .pnsUnreachable, .pnsServerError, .pnsInterfaceError:
            return (outcome, reason, after)
        default: return nil
        }
    }
}

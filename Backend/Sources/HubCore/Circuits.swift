import HTTPMessages
import Synchronization
package import TidingsModels

/// A push service: a platform, and where channels lead to different servers, one of those.
package struct PushService: Hashable, Sendable {
    package var platform: Platform
    /// `https://updates.push.services.mozilla.com`; nil where the hub's own endpoint is the only one.
    package var origin: String?

    init(_ handle: PlatformHandle) {
        // Legacy Google payloads travel as FCM v1.
        platform = handle.platform == .gcm ? .fcmV1 : handle.platform
        switch handle.platform {
        case .wns, .mpns, .browser: origin = HTTPURL(handle.text)?.origin
        default: break
        }
    }
}

/// The circuits of one hub. Only services in trouble are remembered, at most ``countMax`` of them.
package final class Circuits: Sendable {
    /// Beyond it services are asked without a circuit: channels name servers as they like.
    static let countMax = 1000

    private let circuits = Mutex<[PushService: Circuit]>([:])

    package init() {}

    /// Targets that wait, with the moment of their next look.
    struct Deferral {
        var index: Int
        var until: Timestamp
        var outcome: Outcome
        var reason: String
    }

    /// What is to become of some handles.
    struct Sorted {
        /// Those that may be sent to now, by their place.
        var admitted: [Int]
        /// Those of them that go first and for all.
        var probes: Set<Int> = []
        var deferred: [Deferral] = []
    }

    func sort(_ handles: [PlatformHandle], now: Timestamp) -> Sorted {
        circuits.withLock { circuits in
            guard circuits.contains(where: { $0.value.state != .closed }) else {
                return Sorted(admitted: Array(handles.indices))
            }
            var sorted = Sorted(admitted: [])
            var admissions: [PushService: Circuit.Admission] = [:]
            for (index, handle) in handles.enumerated() {
                let service = PushService(handle)
                let admission = admissions[service] ?? circuits[service]?.admission(now: now) ?? .all
                switch admission {
                case .all: sorted.admitted.append(index)
                case .one:
                    sorted.admitted.append(index)
                    sorted.probes.insert(index)
                    admissions[service] = .some(.none(until: now + Circuit.probeWait))
                    continue
                case .none(let until):
                    sorted.deferred.append(
                        Deferral(
                            index: index,
                            until: until,
                            outcome: circuits[service]?.outcome ?? .pnsUnavailable,
                            reason: circuits[service]?.reason ?? ""
                        )
                    )
                }
                admissions[service] = admission
            }
            return sorted
        }
    }

    /// Takes note of answers, and tells which circuits changed.
    func record(
        _ answers: [(handle: PlatformHandle, answer: TargetAnswer)],
        now: Timestamp
    ) -> [(service: PushService, change: Circuit.Change, reason: String)] {
        guard let first = answers.first else { return [] }
        return circuits.withLock { circuits in
            // The usual case costs a look at each answer and nothing else.
            let isTracked = circuits.keys.contains { $0.platform == PushService(first.handle).platform }
            guard isTracked || answers.contains(where: { $0.answer.trouble != nil }) else { return [] }
            var changes: [(service: PushService, change: Circuit.Change, reason: String)] = []
            for (service, answers) in Dictionary(grouping: answers, by: { PushService($0.handle) }) {
                let troubles = answers.compactMap(\.answer.trouble)
                var circuit = circuits[service] ?? Circuit()
                let change = circuit.record(troubles, otherCount: answers.count - troubles.count, now: now)
                if let change { changes.append((service, change, circuit.reason)) }
                let isKept =
                    !circuit.isIdle && (circuits[service] != nil || circuits.count < Self.countMax)
                circuits[service] = isKept ? circuit : nil
            }
            return changes
        }
    }

    /// Forgets everything: the services are others now.
    package func reset() { circuits.withLock { $0 = [:] } }

    /// How many services of a platform are not asked at present.
    package func openCount(_ platform: Platform) -> Int {
        circuits.withLock { circuits in
            circuits.count { $0.key.platform == platform && $0.value.state != .closed }
        }
    }
}

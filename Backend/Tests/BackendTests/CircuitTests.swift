import ProcessLifecycle
import Synchronization
import Testing
import TidingsConformance
import TidingsModels

@testable import HubCore

/// A push service in trouble: when it is left alone, what becomes of its targets, and how it is asked again.
@Suite("Circuits")
struct CircuitTests {
    private let start = Timestamp(seconds: 1_000_000)
    private let trouble: (outcome: Outcome, reason: String, asked: Duration?) = (
        .pnsServerError, "status 500", nil
    )

    private func troubles(
        _ count: Int,
        asked: Duration? = nil
    ) -> [(
        outcome: Outcome, reason: String, asked: Duration?
    )] {
        Array(repeating: (trouble.outcome, trouble.reason, asked), count: count)
    }

    @Test("it opens at half of at least 20 answers within ten seconds, and not before")
    func opening() {
        var few = Circuit()
        #expect(few.record(troubles(19), otherCount: 0, now: start) == nil)
        #expect(few.admission(now: start) == .all)
        // The window is over: it begins anew.
        #expect(few.record(troubles(19), otherCount: 0, now: start + .seconds(10)) == nil)
        #expect(
            few.record(troubles(1), otherCount: 0, now: start + .seconds(11))
                == .opened(until: start + .seconds(16))
        )
        var half = Circuit()
        #expect(half.record(troubles(10), otherCount: 11, now: start) == nil)
        #expect(half.record(troubles(1), otherCount: 0, now: start) == .opened(until: start + .seconds(5)))
        #expect(half.admission(now: start + .seconds(4)) == .none(until: start + .seconds(5)))
    }

    @Test("one target goes first; each failure doubles the wait up to a minute, success closes it")
    func probing() {
        var circuit = Circuit()
        _ = circuit.record(troubles(20), otherCount: 0, now: start)
        var now = start + .seconds(5)
        for wait in [10, 20, 40, 60, 60] {
            #expect(circuit.admission(now: now) == .one)
            // Nobody follows; whoever looks comes back soon.
            #expect(circuit.admission(now: now) == .none(until: now + .seconds(1)))
            // Answers of requests from before it opened change nothing while it is open.
            #expect(
                circuit.record(troubles(1), otherCount: 0, now: now)
                    == .opened(until: now + .seconds(wait))
            )
            #expect(circuit.record(troubles(100), otherCount: 100, now: now) == nil)
            now = now + .seconds(wait)
        }
        #expect(circuit.admission(now: now) == .one)
        #expect(circuit.record([], otherCount: 1, now: now) == .closed)
        #expect(circuit.admission(now: now) == .all && circuit.isIdle)
    }

    @Test("a probe that never comes back is replaced, and a platform that asks for more time gets it")
    func lostProbe() {
        var circuit = Circuit()
        #expect(
            circuit.record(troubles(20, asked: .seconds(120)), otherCount: 0, now: start)
                == .opened(until: start + .seconds(120))
        )
        let later = start + .seconds(120)
        #expect(circuit.admission(now: later) == .one)
        #expect(circuit.admission(now: later + .seconds(59)) == .none(until: later + .seconds(60)))
        #expect(circuit.admission(now: later + .seconds(60)) == .one)
    }

    @Test("servers of channels are told apart, and what works is not remembered")
    func services() throws {
        let circuits = Circuits()
        let bad = try (0..<20).map {
            try PlatformHandle("https://a.notify.windows.com/?token=\($0)", platform: .wns)
        }
        let good = try PlatformHandle("https://b.notify.windows.com/?token=1", platform: .wns)
        let phone = try PlatformHandle("AA01", platform: .apns)
        #expect(circuits.record([(good, .accepted)], now: start).isEmpty)
        let answer = TargetAnswer.retry(.pnsUnreachable, reason: "no route", after: nil)
        let changes = circuits.record(bad.map { ($0, answer) } + [(good, .accepted)], now: start)
        #expect(changes.map(\.service.origin) == ["https://a.notify.windows.com"])
        let sorted = circuits.sort([bad[0], good, phone, bad[1]], now: start)
        #expect(sorted.admitted == [1, 2] && sorted.deferred.map(\.index) == [0, 3])
        #expect(circuits.openCount(.wns) == 1 && circuits.openCount(.apns) == 0)
        // A throttled or dead target says nothing of the service.
        for answer: TargetAnswer in [
            .retry(.channelThrottled, reason: "", after: nil), .retry(.throttled, reason: "", after: nil),
            .dead(.expiredChannel, reason: "", asOf: nil),
            .refused(.invalidCredentials, reason: ""),
        ] {
            #expect(circuits.record(Array(repeating: (phone, answer), count: 100), now: start).isEmpty)
        }
        circuits.reset()
        #expect(circuits.sort(bad, now: start).deferred.isEmpty)
    }

    @Test("an outage of ten minutes: few requests, no target loses a try, and everything arrives once")
    func outage() async throws {
        let folder = try Files.makeScratchFolder("tidings-circuit")
        defer { Files.removeTree(folder) }
        let isDown = Atomic<Bool>(true)
        let sender = ScriptedSender { _, _ in
            isDown.load(ordering: .relaxed)
                ? .retry(.pnsServerError, reason: "status 500", after: .zero) : .accepted
        }
        let clock = WorldClock(standingAt: start)
        let test = try await TestHub.open(folder, [.apns: sender], clock: clock)
        for index in 0..<50 { _ = try await test.register(index) }
        let id = try await test.hub.send(.native(.apns, "{}"), tags: "all")
        try await test.resting()
        let first = sender.calls.count
        #expect(first == 1)
        for _ in 0..<120 {
            clock.advance(by: .seconds(5))
            try await test.resting()
        }
        // A probe of one target a minute, once the wait has doubled that far.
        #expect(sender.calls.count < 20)
        #expect(sender.calls.dropFirst().allSatisfy { $0.count == 1 })
        #expect(try await test.hub.details(id.text).state == .processing)
        isDown.store(false, ordering: .relaxed)
        let before = sender.handles.count
        let details = try await test.outcome(id, advancing: .seconds(5))
        #expect(details.outcomes == [.apns: [.success: 50]])
        #expect(sender.handles.count - before == 50)
        await test.close()
    }

    @Test("an outage longer than the time budget: the outcome is the service's, with the reason")
    func endlessOutage() async throws {
        let folder = try Files.makeScratchFolder("tidings-circuit")
        defer { Files.removeTree(folder) }
        let sender = ScriptedSender { _, _ in
            .retry(.pnsUnavailable, reason: "status 503", after: .seconds(86400))
        }
        let test = try await TestHub.open(
            folder,
            [.apns: sender],
            clock: WorldClock(standingAt: start)
        )
        for index in 0..<50 { _ = try await test.register(index) }
        for isAsked in [true, false] {
            let id = try await test.hub.send(.native(.apns, "{}"), tags: "all")
            #expect(try await test.outcome(id).outcomes == [.apns: [.pnsUnavailable: 50]])
            let reasons = Set(try await test.store.failures(of: id).map(\.reason))
            #expect(reasons == [isAsked ? "status 503" : "not asked, its circuit is open: status 503"])
        }
        #expect(sender.calls.count == 1)
        // Other credentials may lead to another service.
        test.hub.dispatcher.replace(test.hub.dispatcher.senders.all)
        _ = try await test.outcome(try await test.hub.send(.native(.apns, "{}"), tags: "all"))
        #expect(sender.calls.count == 2)
        await test.close()
    }
}

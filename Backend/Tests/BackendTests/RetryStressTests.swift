import ProcessLifecycle
import Synchronization
import TidingsConformance
import TidingsModels
import Testing

@testable import HubCore

/// Retries that become due at every moment.
@Suite("Retries under stress")
struct RetryStress {
    @Test(
        "many sends whose targets wait again and again: each ends, also when nothing else goes on",
        .timeLimit(.minutes(5))
    )
    func nothingForgotten() async throws {
        let folder = try Files.makeScratchFolder("tidings-retries")
        defer { Files.removeTree(folder) }
        // Three tries of four fail.
        let calls = Atomic<Int>(0)
        let sender = ScriptedSender { _, _ in
            let call = calls.add(1, ordering: .relaxed).newValue
            return call % 4 == 0
                ? .accepted : .retry(.throttled, reason: "busy", after: .milliseconds(call * 7 % 30))
        }
        let test = try await TestHub.open(folder, [.apns: sender])
        for index in 0..<20 { _ = try await test.register(index) }
        for round in 0..<40 {
            var ids: [NotificationID] = []
            for _ in 0..<(1 + round % 5) {
                ids.append(try await test.hub.send(.native(.apns, "{}"), tags: "all"))
            }
            for id in ids {
                let deadline = ContinuousClock.now + .seconds(20)
                while true {
                    let details = try await test.hub.details(id.text)
                    if details.state.isFinal { break }
                    guard ContinuousClock.now < deadline else {
                        let counts = try await test.hub.dispatcher.sendCounts()
                        Issue.record("round \(round): \(details.state.rawValue) for ever; \(counts)")
                        return
                    }
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
        }
        await test.close()
    }
}

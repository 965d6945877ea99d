import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Every recorded answer of the original, asked again of a fresh hub.
@Suite(
    "Recorded answers",
    .enabled(
        if: Recording.folder != nil,
        "the recordings are not here: TIDINGS_RECORDINGS names their folder"
    )
)
struct RecordingTests {
    @Test("each is answered in the same form, or differs for a stated reason")
    func replay() async throws {
        let recordings = try Recording.all()
        var same = 0
        var deliberate: [String: Int] = [:]
        try await RecordingServer.run { server in
            for recording in recordings {
                let results = try await server.replay(recording)
                for (call, difference) in zip(recording.calls, results) {
                    guard let difference else {
                        same += 1
                        continue
                    }
                    let reason = Deliberate.all.first { $0.matches(recording, call, difference) }?.reason
                    #expect(reason != nil, "\(recording.name): \(call.target): \(difference)")
                    if let reason { deliberate[reason, default: 0] += 1 }
                }
            }
        }
        let count = deliberate.values.reduce(0, +)
        print("recorded answers: same \(same) + deliberate \(count) = \(same + count)")
        for (reason, count) in deliberate.sorted(by: { $0.key < $1.key }) { print("  \(count)  \(reason)") }
        let calls = recordings.reduce(0) { $0 + $1.calls.count }
        #expect(calls > 0 && same + count == calls)
        for known in Deliberate.all {
            #expect(deliberate[known.reason] != nil, "no longer true: \(known.reason)")
        }
    }
}

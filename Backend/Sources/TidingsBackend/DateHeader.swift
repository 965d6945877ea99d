import Synchronization
import TidingsModels

/// The `Date` field of the current second (RFC 9110 section 6.6.1), written once for all answers in that second.
final class DateHeader: Sendable {
    private let time: any TimeSource
    private let written = Mutex<(second: Int64, text: String)>((.min, ""))

    init(_ time: any TimeSource) { self.time = time }

    var text: String {
        let now = time.now
        return written.withLock { written in
            if written.second != now.seconds { written = (now.seconds, now.httpDate) }
            return written.text
        }
    }
}

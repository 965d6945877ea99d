import Synchronization

/// Named event counts of one process. Names are the metric names of `/-/metrics`, with labels as in `x{status="200"}`.
package final class Counters: Sendable {
    private let values = Mutex<[String: Int]>([:])

    package init() {}

    package func add(_ name: String, _ count: Int = 1) { values.withLock { $0[name, default: 0] += count } }

    package subscript(name: String) -> Int { values.withLock { $0[name] ?? 0 } }

    /// The counts as Prometheus text, sorted by name.
    func prometheusText() -> String {
        var text = ""
        var last: Substring = ""
        for (key, value) in values.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let name = key.prefix { $0 != "{" }
            if name != last { text += "# TYPE tidings_\(name) counter\n" }
            last = name
            text += "tidings_\(key) \(value)\n"
        }
        return text
    }
}

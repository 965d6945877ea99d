import Synchronization

/// Named event counts of one service. Names are the metric names of `/-/metrics`.
package final class Counters: Sendable {
    private let values = Mutex<[String: Int]>([:])

    package init() {}

    package func add(_ name: String, _ count: Int = 1) { values.withLock { $0[name, default: 0] += count } }

    package subscript(name: String) -> Int { values.withLock { $0[name] ?? 0 } }

    /// The counts as Prometheus text (exposition format 0.0.4), sorted by name.
    package func prometheusText() -> String {
        values.withLock { $0 }.sorted { $0.key < $1.key }
            .map { "# TYPE tidings_\($0.key) counter\ntidings_\($0.key) \($0.value)\n" }.joined()
    }
}

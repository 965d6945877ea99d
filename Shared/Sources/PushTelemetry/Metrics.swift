import Synchronization

/// How often values fell below each bound. Bounds are fixed, so that adding one costs a search and no memory.
package final class Histogram: Sendable {
    private struct State {
        var counts: [Int]
        var sum = 0.0
    }

    private let bounds: [Double]
    private let state: Mutex<State>

    /// - Parameter bounds: Upper bounds, ascending; what is above the last counts as well.
    package init(bounds: [Double]) {
        self.bounds = bounds
        state = Mutex(State(counts: Array(repeating: 0, count: bounds.count + 1)))
    }

    /// For seconds, from a tenth of a millisecond to ten seconds.
    package static func ofSeconds() -> Histogram {
        Histogram(bounds: [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10])
    }

    package func add(_ value: Double) {
        let index = bounds.firstIndex { value <= $0 } ?? bounds.count
        state.withLock { state in
            state.counts[index] += 1
            state.sum += value
        }
    }

    /// How many values there were.
    package var count: Int { state.withLock { $0.counts.reduce(0, +) } }

    /// The samples of the exposition format: cumulative buckets, sum and count.
    func lines(_ name: String, _ labels: String) -> String {
        let state = state.withLock { $0 }
        let separator = labels.isEmpty ? "" : ","
        var total = 0
        var text = ""
        for (index, count) in state.counts.enumerated() {
            total += count
            let bound = index < bounds.count ? Metrics.text(bounds[index]) : "+Inf"
            text += "\(name)_bucket{\(labels)\(separator)le=\"\(bound)\"} \(total)\n"
        }
        let suffix = labels.isEmpty ? "" : "{\(labels)}"
        return text + "\(name)_sum\(suffix) \(Metrics.text(state.sum))\n\(name)_count\(suffix) \(total)\n"
    }
}

/// Everything that a process tells about itself: counts, present values and distributions, as Prometheus text.
package final class Metrics: Sendable {
    package let counters = Counters()
    private enum Source: Sendable {
        case gauge(@Sendable () async -> Double)
        case histogram(Histogram)
    }
    private struct Entry: Sendable {
        let name: String
        let labels: String
        let source: Source
    }
    private let entries = Mutex<[Entry]>([])

    package init() {}

    /// - Parameters:
    ///   - labels: As in `service="hub"`, or empty.
    ///   - read: Asked at each scrape.
    package func gauge(_ name: String, _ labels: String = "", _ read: @escaping @Sendable () async -> Double)
    {
        entries.withLock { $0.append(Entry(name: name, labels: labels, source: .gauge(read))) }
    }

    package func histogram(_ name: String, _ labels: String = "", _ histogram: Histogram) {
        entries.withLock { $0.append(Entry(name: name, labels: labels, source: .histogram(histogram))) }
    }

    /// Exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/): the samples of one name stand
    /// together below one TYPE line.
    package func prometheusText() async -> String {
        var text = counters.prometheusText()
        let entries = entries.withLock { $0 }
        var names: [String] = []
        for entry in entries where !names.contains(entry.name) { names.append(entry.name) }
        for name in names {
            for (index, entry) in entries.filter({ $0.name == name }).enumerated() {
                let full = "tidings_\(name)"
                switch entry.source {
                case .gauge(let read):
                    if index == 0 { text += "# TYPE \(full) gauge\n" }
                    let suffix = entry.labels.isEmpty ? "" : "{\(entry.labels)}"
                    text += "\(full)\(suffix) \(Self.text(await read()))\n"
                case .histogram(let histogram):
                    if index == 0 { text += "# TYPE \(full) histogram\n" }
                    text += histogram.lines(full, entry.labels)
                }
            }
        }
        return text
    }

    /// Whole numbers without a point.
    static func text(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}

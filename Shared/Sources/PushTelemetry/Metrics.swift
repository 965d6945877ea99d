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
        /// The one among the values of a read that all of its gauges share.
        case gauge(read: Int, index: Int)
        case histogram(Histogram)
    }
    private struct Entry: Sendable {
        let name: String
        let labels: String
        let source: Source
    }
    private struct State: Sendable {
        var entries: [Entry] = []
        var reads: [@Sendable () async -> [Double]] = []
    }
    private let state = Mutex(State())

    package init() {}

    /// - Parameters:
    ///   - labels: As in `service="hub"`, or empty.
    ///   - read: Asked at each scrape.
    package func gauge(_ name: String, _ labels: String = "", _ read: @escaping @Sendable () async -> Double)
    {
        gauges([name], labels) { [await read()] }
    }

    /// Gauges whose values come from one look, which is taken once for each scrape.
    ///
    /// - Parameter read: The values in the order of the names; those that are missing are not a number.
    package func gauges(
        _ names: [String],
        _ labels: String = "",
        _ read: @escaping @Sendable () async -> [Double]
    ) {
        state.withLock { state in
            for (index, name) in names.enumerated() {
                let source = Source.gauge(read: state.reads.count, index: index)
                state.entries.append(Entry(name: name, labels: labels, source: source))
            }
            state.reads.append(read)
        }
    }

    package func histogram(_ name: String, _ labels: String = "", _ histogram: Histogram) {
        state.withLock {
            $0.entries.append(Entry(name: name, labels: labels, source: .histogram(histogram)))
        }
    }

    /// Forgets what was added with these labels.
    package func remove(_ labels: String) {
        state.withLock { state in
            for entry in state.entries where entry.labels == labels {
                if case .gauge(let read, _) = entry.source { state.reads[read] = { [] } }
            }
            state.entries.removeAll { $0.labels == labels }
        }
    }

    /// Exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/): the samples of one name stand
    /// together below one TYPE line.
    package func prometheusText() async -> String {
        var text = counters.prometheusText()
        let (entries, reads) = state.withLock { ($0.entries, $0.reads) }
        var values: [[Double]] = []
        for read in reads { values.append(await read()) }
        var names: [String] = []
        for entry in entries where !names.contains(entry.name) { names.append(entry.name) }
        for name in names {
            for (index, entry) in entries.filter({ $0.name == name }).enumerated() {
                let full = "tidings_\(name)"
                switch entry.source {
                case .gauge(let read, let place):
                    if index == 0 { text += "# TYPE \(full) gauge\n" }
                    let suffix = entry.labels.isEmpty ? "" : "{\(entry.labels)}"
                    let value = place < values[read].count ? values[read][place] : .nan
                    text += "\(full)\(suffix) \(Self.text(value))\n"
                case .histogram(let histogram):
                    if index == 0 { text += "# TYPE \(full) histogram\n" }
                    text += histogram.lines(full, entry.labels)
                }
            }
        }
        return text
    }

    /// Whole numbers without a point; not a number as the format spells it.
    static func text(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int(value)) : String(value)
    }
}

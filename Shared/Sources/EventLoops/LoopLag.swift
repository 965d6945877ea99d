package import PushTelemetry

/// Measures how late a loop comes to what is due: once a second, on each loop of a group.
package final class LoopLag: Sendable {
    private static let interval = Duration.seconds(1)
    private let meters: [Meter]
    package let seconds = Histogram.ofSeconds()

    package init(_ group: EventLoopGroup = .shared) {
        let seconds = seconds
        meters = group.loops.map { Meter($0, seconds) }
    }

    deinit { stop() }

    package func stop() { for meter in meters { meter.stop() } }

    /// Loop-confined.
    private final class Meter: @unchecked Sendable {
        private let loop: EventLoop
        private var timer: LoopTimer?
        private var due = ContinuousClock.now + interval

        init(_ loop: EventLoop, _ seconds: Histogram) {
            self.loop = loop
            loop.execute { [self] in
                due = .now + interval
                timer = LoopTimer(on: loop, after: interval, every: interval) { [weak self] in
                    guard let self else { return }
                    seconds.add(max(0, (ContinuousClock.now - due) / .seconds(1)))
                    due = .now + interval
                }
            }
        }

        func stop() {
            loop.execute { [self] in
                timer?.cancel()
                timer = nil
            }
        }
    }
}

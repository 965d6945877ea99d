import Glibc
package import TidingsModels

/// The machine's clock.
package struct SystemTimeSource: TimeSource {
    package init() {}

    package var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    package func sleep(until deadline: Timestamp) async throws {
        let left = deadline - now
        if left > .zero { try await Task.sleep(for: left, tolerance: .milliseconds(1)) }
    }
}

import CTidingsUV
import Synchronization

/// The loops of a process.
package final class EventLoopGroup: Sendable {
    /// One loop for each core that the process may run on (sched_getaffinity(2), so a container's or taskset's share), shared
    /// by everything in the process.
    package static let shared = EventLoopGroup(count: max(1, Int(uv_available_parallelism())))

    package let loops: [EventLoop]
    private let nextIndex = Atomic<Int>(0)

    package init(count: Int) {
        loops = (0..<count).map { EventLoop(name: "loop-\($0)") }
    }

    /// The loops in turn.
    package func next() -> EventLoop {
        loops[nextIndex.wrappingAdd(1, ordering: .relaxed).oldValue % loops.count]
    }
}

import Glibc
import Synchronization

/// The loops of a process.
package final class EventLoopGroup: Sendable {
    /// One loop for each core, shared by everything in the process.
    package static let shared = EventLoopGroup(count: max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN))))

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

import Synchronization

/// A logical time: every look at it moves it on, so that what came first has the smaller number.
package final class LogicalClock: Sendable {
    private let value = Atomic<Int>(0)

    package init() {}
    package func next() -> Int { value.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue }
}

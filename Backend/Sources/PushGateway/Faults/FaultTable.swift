import Synchronization
import TidingsModels

/// The faults that are asked for, in their order: the first that concerns a push is the one that happens.
package final class FaultTable: Sendable {
    struct Entry: Sendable {
        let id: Int
        let rule: FaultRule
        /// Pushes that fitted platform and handle.
        var seenCount = 0
        /// Those that got the fault.
        var appliedCount = 0
    }

    static let countMax = 1000

    private struct State {
        var entries: [Entry] = []
        var nextID = 1
    }
    private let state = Mutex(State())

    package init() {}

    var entries: [Entry] { state.withLock { $0.entries } }

    /// - Throws: ``HubError`` `.badRequest` when there are ``countMax`` rules.
    func add(_ rule: FaultRule) throws(HubError) -> Int {
        let id = state.withLock { state -> Int? in
            guard state.entries.count < Self.countMax else { return nil }
            defer { state.nextID += 1 }
            state.entries.append(Entry(id: state.nextID, rule: rule))
            return state.nextID
        }
        guard let id else { throw HubError(.badRequest, "There are \(Self.countMax) faults already.") }
        return id
    }

    /// False when there is none.
    func remove(_ id: Int) -> Bool {
        state.withLock { state in
            let count = state.entries.count
            state.entries.removeAll { $0.id == id }
            return state.entries.count < count
        }
    }

    func removeAll() { state.withLock { $0.entries = [] } }

    /// What happens to a push.
    ///
    /// - Parameter shown: The handle as its device shows it.
    func fault(_ platform: Platform, shown: @autoclosure () -> String) -> FaultRule.Fault? {
        state.withLock { state in
            for index in state.entries.indices {
                let rule = state.entries[index].rule
                guard rule.platform.map({ $0 == platform }) ?? true,
                    rule.handle.map({ $0 == shown() }) ?? true,
                    rule.countMax.map({ state.entries[index].appliedCount < $0 }) ?? true
                else { continue }
                state.entries[index].seenCount += 1
                let applies: Bool =
                    switch rule.share {
                    case .every(let count): state.entries[index].seenCount.isMultiple(of: count)
                    case .rate(let rate): Double.random(in: 0..<1) < rate
                    }
                guard applies else { continue }
                state.entries[index].appliedCount += 1
                return rule.fault
            }
            return nil
        }
    }
}

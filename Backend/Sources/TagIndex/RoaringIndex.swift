package import HubCore
import Synchronization
package import TidingsModels

/// The audience index of one hub, in memory.
package final class RoaringIndex: AudienceIndex, Sendable {
    private struct State: ~Copyable {
        var table: PostingTable
        /// Every registration of a kind: what `!tag` and a broadcast mean.
        var kinds: [IndexEntry.Kind: KindBitmap] = [:]
        var change: Int64 = 0
    }

    /// A `~Copyable` bitmap cannot be a dictionary value.
    private final class KindBitmap {
        let bitmap = Bitmap()
    }

    /// Guards the table and the bitmaps; held for a change or for one resolve (tens of microseconds per operator).
    private let state: Mutex<State>

    /// - Parameters:
    ///   - seed: Random for each process, so that nobody can choose tags that collide.
    ///   - fingerprintBits: Fewer than 64 in tests only.
    package init(seed: UInt64, fingerprintBits: Int = 64) {
        state = Mutex(State(table: PostingTable(seed: seed, fingerprintBits: fingerprintBits)))
    }

    package func apply(_ change: IndexChange) {
        state.withLock { state in
            state.change = max(state.change, change.change)
            if let old = change.old {
                state.kinds[old.kind]?.bitmap.remove(change.number)
                for tag in old.tags { state.table.remove(Array(tag.key.utf8), change.number) }
            }
            if let new = change.new {
                if state.kinds[new.kind] == nil { state.kinds[new.kind] = KindBitmap() }
                state.kinds[new.kind]?.bitmap.insert(change.number)
                for tag in new.tags { state.table.insert(Array(tag.key.utf8), change.number) }
            }
        }
    }

    package func resolve(_ kind: IndexEntry.Kind, _ expression: TagExpression?) -> any Audience {
        state.withLock { state in
            guard let universe = state.kinds[kind] else {
                return RoaringAudience(Bitmap(), change: state.change)
            }
            guard let expression else { return RoaringAudience(universe.bitmap.copy(), change: state.change) }
            let result = Self.evaluate(expression, universe.bitmap, state.table, isUpper: true)
            return RoaringAudience(result, change: state.change)
        }
    }

    package func audience(serialized: [UInt8], change: Int64) -> (any Audience)? {
        RoaringAudience.restore(serialized, change: change)
    }

    /// The numbers in `universe` that match: with `isUpper` at least those, else at most those. The two differ only
    /// where fingerprints collide; `!` turns one into the other.
    private static func evaluate(
        _ expression: TagExpression,
        _ universe: borrowing Bitmap,
        _ table: borrowing PostingTable,
        isUpper: Bool
    ) -> Bitmap {
        switch expression {
        case .tag(let tag):
            let result = Bitmap()
            let isExact = table.addNumbers(Array(tag.key.utf8), to: result.pointer)
            if !isExact, !isUpper { return Bitmap() }
            result.formIntersection(universe)
            return result
        case .not(let operand):
            let result = universe.copy()
            result.subtract(evaluate(operand, universe, table, isUpper: !isUpper))
            return result
        case .or(let operands):
            let result = Bitmap()
            for operand in operands { result.formUnion(evaluate(operand, universe, table, isUpper: isUpper)) }
            return result
        case .and(let operands):
            // Intersections shrink: `a && !b` becomes a subtraction from `a`, never a complement of its own.
            var result: Bitmap?
            for operand in operands {
                if case .not = operand { continue }
                let next = evaluate(operand, universe, table, isUpper: isUpper)
                if let so = result.take() {
                    so.formIntersection(next)
                    result = consume so
                } else {
                    result = consume next
                }
            }
            let matched = result.take() ?? universe.copy()
            for operand in operands {
                guard case .not(let inner) = operand else { continue }
                matched.subtract(evaluate(inner, universe, table, isUpper: !isUpper))
            }
            return matched
        }
    }
}

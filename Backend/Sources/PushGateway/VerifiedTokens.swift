import Synchronization
import TidingsModels

/// Tokens of providers whose signature was checked, until they end: a provider sends the same one with each push. At most
/// ``countMax``, of ``byteCountMax`` bytes each.
final class VerifiedTokens<Value: Sendable>: Sendable {
    static var countMax: Int { 1000 }
    static var byteCountMax: Int { 2048 }

    private struct Known {
        var value: Value
        var until: Timestamp
    }
    private let known = Mutex<[String: Known]>([:])

    /// What was noted, and until when; also when that is over.
    subscript(text: String) -> (value: Value, until: Timestamp)? {
        known.withLock { $0[text] }.map { ($0.value, $0.until) }
    }

    func insert(_ text: String, _ value: Value, until: Timestamp) {
        guard text.utf8.count <= Self.byteCountMax else { return }
        known.withLock { known in
            if known.count >= Self.countMax { known.removeAll() }
            known[text] = Known(value: value, until: until)
        }
    }
}

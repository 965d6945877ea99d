import HubCore
import Synchronization
import TidingsModels

/// How many registrations a hub may hold. The count follows each commit, so that those of one group commit may pass the limit together.
final class RegistrationQuota: Sendable {
    private let countMax: Int?
    private let count = Atomic<Int>(0)

    init(countMax: Int?) { self.countMax = countMax }

    func follow(_ change: IndexChange) {
        if change.old == nil, change.new != nil { count.add(1, ordering: .relaxed) }
        if change.old != nil, change.new == nil { count.subtract(1, ordering: .relaxed) }
    }

    /// - Throws: ``HubError`` `.throttled` when one more is too many: SDKs take a 403 without `Retry-After` for a bad key.
    func check() throws(HubError) {
        guard let countMax, count.load(ordering: .relaxed) >= countMax else { return }
        throw HubError(
            .throttled,
            "The hub holds \(countMax) registrations, as many as it may; delete some first.",
            retryAfter: .seconds(60)
        )
    }
}

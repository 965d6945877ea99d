import HubCore
import TidingsModels

/// The registrations that have a tag, by the index: those without it are never read. It may name some that have lost the tag.
struct TaggedNumbers: Sendable {
    private let audiences: [any Audience]
    private static let batchCount = 256

    /// Nil for a filter that is no tag.
    init?(_ filter: RegistrationFilter, _ index: any AudienceIndex) {
        guard case .tag(let tag) = filter else { return nil }
        let kinds = [IndexEntry.Kind.template] + Platform.allCases.map { IndexEntry.Kind.native($0) }
        audiences = kinds.map { index.resolve($0, .tag(tag)) }.filter { $0.count > 0 }
    }

    /// The next numbers above one, ascending; empty at the end.
    func numbers(after: Int64) -> [UInt32] {
        let after = after < 0 ? nil : UInt32(exactly: after)
        let next = audiences.flatMap { $0.numbers(after: after, countMax: Self.batchCount) }
        return Array(next.sorted().prefix(Self.batchCount))
    }
}

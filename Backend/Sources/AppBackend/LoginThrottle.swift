import Synchronization
import TidingsModels

/// Slows down who guesses passwords: one user from one address soonest, then an address whatever the user, then a user whatever
/// the address. Each has so many tries free; every further one doubles the wait, up to a quarter of an hour. No try for as long
/// as that, and it is forgotten.
///
/// Who signed in a short while ago is not asked again (``VerifiedCredentialCache``), so that strangers who guess do not lock
/// a user out of what runs.
final class LoginThrottle: Sendable {
    private enum Key: Hashable {
        case pair(String, String)
        case address(String)
        case user(String)

        var freeCount: Int {
            switch self {
            case .pair: 5
            case .address: 50
            case .user: 100
            }
        }
    }

    private struct Entry {
        var tryCount = 0
        var notBefore: Timestamp
        var last: Timestamp
    }

    static let waitMax = Duration.seconds(900)
    static let entryCountMax = 50_000
    private let entries = Mutex<[Key: Entry]>([:])

    private static func keys(_ user: String, _ address: String) -> [Key] {
        let user = user.lowercased()
        let network = network(address)
        return [.pair(user, network), .address(network), .user(user)]
    }

    /// An IPv6 client has a whole /64 to itself (RFC 6177), so its first four groups count.
    static func network(_ address: String) -> String {
        guard address.contains(":") else { return address }
        let halves = address.split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
        var groups = halves[0].split(separator: ":").map(String.init)
        if halves.count == 2 {
            let end = halves[1].split(separator: ":").map(String.init)
            groups += Array(repeating: "0", count: max(0, 8 - groups.count - end.count)) + end
        }
        return groups.prefix(4).joined(separator: ":")
    }

    /// How long to wait before the next try; nil when it may come now.
    func wait(_ user: String, _ address: String, now: Timestamp) -> Duration? {
        entries.withLock { entries in
            let moments = Self.keys(user, address).compactMap { entries[$0]?.notBefore }
            guard let last = moments.max(), last > now else { return nil }
            return .milliseconds(last.milliseconds - now.milliseconds)
        }
    }

    /// A try begins. ``succeeded(_:_:)`` takes it back.
    func began(_ user: String, _ address: String, now: Timestamp) {
        entries.withLock { entries in
            if entries.count >= Self.entryCountMax { Self.makeRoom(&entries, now: now) }
            for key in Self.keys(user, address) {
                var entry = entries[key] ?? Entry(notBefore: now, last: now)
                if Self.isOver(entry, now: now) { entry = Entry(notBefore: now, last: now) }
                entry.tryCount += 1
                entry.last = now
                let beyond = entry.tryCount - key.freeCount
                if beyond >= 0 { entry.notBefore = now + min(Self.waitMax, .seconds(1 << min(beyond, 16))) }
                entries[key] = entry
            }
        }
    }

    /// The pair is forgiven; for the address and the user one try is taken back.
    func succeeded(_ user: String, _ address: String) {
        entries.withLock { entries in
            for key in Self.keys(user, address) {
                if case .pair = key {
                    entries[key] = nil
                } else if var entry = entries[key] {
                    entry.tryCount -= 1
                    entry.notBefore = entry.last
                    entries[key] = entry.tryCount > 0 ? entry : nil
                }
            }
        }
    }

    private static func isOver(_ entry: Entry, now: Timestamp) -> Bool {
        entry.last.milliseconds + Int64(waitMax.components.seconds) * 1000 < now.milliseconds
    }

    /// Forgets what is over; if that is not enough, the half whose last try is the longest ago.
    private static func makeRoom(_ entries: inout [Key: Entry], now: Timestamp) {
        entries = entries.filter { !isOver($0.value, now: now) }
        guard entries.count >= entryCountMax else { return }
        let middle = entries.values.map(\.last.milliseconds).sorted()[entries.count / 2]
        entries = entries.filter { $0.value.last.milliseconds > middle }
    }
}

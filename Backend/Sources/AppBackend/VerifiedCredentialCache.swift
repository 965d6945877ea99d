import PushCredentials
import Synchronization
import TidingsModels

/// Remembers for a short time which credentials were good, so that a scrypt check is paid once and not on each request.
/// Keeps keyed digests, never passwords.
final class VerifiedCredentialCache: Sendable {
    private let key = Digests.random(32)
    private let entries = Mutex<[[UInt8]: Timestamp]>([:])
    private static let entryCountMax = 10_000
    private static let life = Duration.seconds(300)

    private func digest(_ user: String, _ password: String) -> [UInt8] {
        Digests.hmacSHA256(key: key, Array("\(user.utf8.count):\(user)\(password)".utf8))
    }

    /// True when the credentials were good a short while ago.
    func contains(_ user: String, _ password: String, now: Timestamp) -> Bool {
        let digest = digest(user, password)
        return entries.withLock { entries in entries[digest].map { now < $0 } ?? false }
    }

    func insert(_ user: String, _ password: String, now: Timestamp) {
        let digest = digest(user, password)
        entries.withLock { entries in
            if entries.count >= Self.entryCountMax { entries.removeAll() }
            entries[digest] = now + Self.life
        }
    }
}

public import HTTPMessages
import PushCredentials
import Synchronization
package import TidingsModels

/// Who a request comes from.
public struct AuthenticatedUser: Sendable, Hashable {
    /// The name; it becomes the tag `username:<name>`, so it holds the characters of a tag only.
    public let name: String

    /// A user.
    public init(name: String) { self.name = name }
}

/// What a verifier finds.
public enum Verification: Sendable, Equatable {
    /// The credentials are good.
    case user(AuthenticatedUser)
    /// There are none, or they are malformed: 401 with this challenge.
    case missing(challenge: String, reason: String)
    /// They are wrong: 403 in compatibility mode, else 401.
    case rejected(challenge: String)
    /// They cannot be checked now: 503.
    case unavailable
}

/// Decides who a request comes from, before any route is looked at. A team puts its own sign-in here.
public protocol CredentialVerifier: Sendable {
    /// Called once for each request, with its header fields.
    func verify(_ fields: HTTPFields) async -> Verification
}

/// HTTP Basic (RFC 7617) in front of something that knows passwords.
public struct BasicVerifier: CredentialVerifier {
    /// True when the password is the user's.
    private let check: @Sendable (_ user: String, _ password: String) async -> Bool
    private static let challenge = "Basic realm=\"Tidings\", charset=\"UTF-8\""

    /// A verifier over any password check.
    public init(check: @escaping @Sendable (_ user: String, _ password: String) async -> Bool) {
        self.check = check
    }

    /// The tutorials' rule: the password is the user name. For development only.
    public static let tutorial = BasicVerifier { user, password in !user.isEmpty && user == password }

    /// The scheme compares without case; blanks and line ends inside the Base64 are taken, since the tutorials' client
    /// encodes with an option that inserts them; the first colon ends the name.
    public func verify(_ fields: HTTPFields) async -> Verification {
        guard let header = fields["Authorization"] else {
            return .missing(challenge: Self.challenge, reason: "The request has no Authorization header.")
        }
        let parts = header.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "basic" else {
            return .missing(challenge: Self.challenge, reason: "The Authorization scheme must be Basic.")
        }
        guard let bytes = Base64.decode(parts[1], skipsBlanks: true),
            let text = String(validating: bytes, as: UTF8.self),
            let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        else {
            return .missing(
                challenge: Self.challenge,
                reason: "The credentials must be the Base64 of user:password in UTF-8."
            )
        }
        let user = String(text[..<colon])
        guard await check(user, String(text[text.utf8.index(after: colon)...])) else {
            return .rejected(challenge: Self.challenge)
        }
        return .user(AuthenticatedUser(name: user))
    }
}

/// Remembers for a short time which credentials were good, so that a scrypt check is paid once and not on each request.
/// Keeps keyed digests, never passwords.
package final class VerifiedCredentialCache: Sendable {
    private let key = Digests.random(32)
    private let entries = Mutex<[[UInt8]: Timestamp]>([:])
    private static let entryCountMax = 10_000
    private static let life = Duration.seconds(300)

    package init() {}

    private func digest(_ user: String, _ password: String) -> [UInt8] {
        Digests.hmacSHA256(key: key, Array("\(user.utf8.count):\(user)\(password)".utf8))
    }

    /// True when the credentials were good a short while ago, or `verify` says so now.
    package func check(
        _ user: String,
        _ password: String,
        now: Timestamp,
        verify: () async -> Bool
    ) async -> Bool {
        if contains(user, password, now: now) { return true }
        guard await verify() else { return false }
        insert(user, password, now: now)
        return true
    }

    private func contains(_ user: String, _ password: String, now: Timestamp) -> Bool {
        let digest = digest(user, password)
        return entries.withLock { entries in entries[digest].map { now < $0 } ?? false }
    }

    private func insert(_ user: String, _ password: String, now: Timestamp) {
        let digest = digest(user, password)
        entries.withLock { entries in
            if entries.count >= Self.entryCountMax { entries.removeAll() }
            entries[digest] = now + Self.life
        }
    }

    /// After a password changed or a user is gone.
    package func removeAll() { entries.withLock { $0.removeAll() } }
}

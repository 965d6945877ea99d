public import HTTPMessages

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
    /// Too many were wrong: 429 with the time to wait.
    case throttled(Duration)
    /// They cannot be checked now: 503.
    case unavailable
}

/// Decides who a request comes from, before any route is looked at. A team puts its own sign-in here.
public protocol CredentialVerifier: Sendable {
    /// Called once for each request, with its header fields and the numeric address that it comes from (behind
    /// `trustedProxies` the one that they tell).
    func verify(_ fields: HTTPFields, from address: String) async -> Verification
}

/// HTTP Basic (RFC 7617) in front of something that knows passwords.
public struct BasicVerifier: CredentialVerifier {
    private let check:
        @Sendable (_ user: String, _ password: String, _ address: String) async -> PasswordCheck
    private static let challenge = "Basic realm=\"Tidings\", charset=\"UTF-8\""

    /// A verifier over any password check, which tells whether the password is the user's. It slows nobody down.
    public init(check: @escaping @Sendable (_ user: String, _ password: String) async -> Bool) {
        self.check = { user, password, _ in await check(user, password) ? .good : .wrong }
    }

    package init(
        check:
            @escaping @Sendable (_ user: String, _ password: String, _ address: String) async -> PasswordCheck
    ) {
        self.check = check
    }

    /// The tutorials' rule: the password is the user name. For development only.
    public static let tutorial = BasicVerifier { user, password in !user.isEmpty && user == password }

    /// The scheme compares without case; blanks and line ends inside the Base64 are taken, since the tutorials' client
    /// encodes with an option that inserts them; the first colon ends the name.
    public func verify(_ fields: HTTPFields, from address: String) async -> Verification {
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
        switch await check(user, String(text[text.utf8.index(after: colon)...]), address) {
        case .good: return .user(AuthenticatedUser(name: user))
        case .wrong: return .rejected(challenge: Self.challenge)
        case .throttled(let wait): return .throttled(wait)
        case .unavailable: return .unavailable
        }
    }
}

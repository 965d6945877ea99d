import TidingsModels

/// What Apple holds against a connection, in strict mode (push services reference, section 1.6): one stream until a provider is known, one
/// team and one key, and another token every 20 minutes at the soonest.
struct APNsConnectionRules: Sendable {
    private struct Known {
        var keyID: String
        var token: String
        var since: Timestamp
    }

    private static let tokenPause = Duration.seconds(20 * 60)

    private var isOpen = false
    private var known: Known?
    private var hasStranger = false
    private var isThrottled = false

    /// Why a token is refused before anybody looks at its signature; nil when nothing speaks against it.
    mutating func refusal(
        _ token: String,
        keyID: String,
        isOwnTeam: Bool,
        now: Timestamp
    ) -> (status: Int, reason: String)? {
        guard let known else { return nil }
        if !isOwnTeam { hasStranger = true }
        // Tokens of two teams make both fail.
        if hasStranger { return (403, "InvalidProviderToken") }
        if keyID != known.keyID { return (403, "UnrelatedKeyIdInToken") }
        if now >= known.since + Self.tokenPause {
            isThrottled = false
        } else if isThrottled || token != known.token {
            isThrottled = true
            return (429, "TooManyProviderTokenUpdates")
        }
        return nil
    }

    /// A token was good.
    mutating func accept(_ token: String, keyID: String, now: Timestamp) {
        if known?.token != token { known = Known(keyID: keyID, token: token, since: now) }
    }

    /// True once: more streams are allowed from here on.
    mutating func open() -> Bool {
        defer { isOpen = true }
        return !isOpen
    }
}

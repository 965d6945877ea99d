public import TidingsModels

/// Which tags a user may put on a device. `username:` is never asked for: only the back end sets it.
public protocol TagPolicy: Sendable {
    /// True when the user may have the tag.
    func allows(_ tag: HubTag, for user: AuthenticatedUser) async -> Bool
}

/// Who may send to whom.
public protocol SendPolicy: Sendable {
    /// True when `sender` may notify the user `recipient`.
    func allows(from sender: AuthenticatedUser, to recipient: String) async -> Bool
}

/// The tutorials' rules: any tag, and any user may notify any other.
public struct OpenPolicy: TagPolicy, SendPolicy {
    /// The rules.
    public init() {}
    /// Always true.
    public func allows(_ tag: HubTag, for user: AuthenticatedUser) async -> Bool { true }
    /// Always true.
    public func allows(from sender: AuthenticatedUser, to recipient: String) async -> Bool { true }
}

/// What a key may do at a hub (protocol reference, section 2.5).
public struct AccessRights: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: Int
    /// Rights by their bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Register devices.
    public static let listen = AccessRights(rawValue: 1)
    /// Send, and read what became of it.
    public static let send = AccessRights(rawValue: 2)
    /// Change hubs, and read every registration.
    public static let manage = AccessRights(rawValue: 4)
    /// All three.
    public static let full: AccessRights = [.listen, .manage, .send]

    /// The names on the wire, in the order of the original.
    package var names: [String] {
        [(AccessRights.listen, "Listen"), (.manage, "Manage"), (.send, "Send")]
            .filter { contains($0.0) }.map(\.1)
    }

    package var text: String { names.joined(separator: ", ") }

    /// Nil for another name; case does not matter.
    package init?(name: String) {
        switch name.lowercased() {
        case "listen": self = .listen
        case "manage": self = .manage
        case "send": self = .send
        default: return nil
        }
    }
}

/// A named pair of keys with its rights. Keys are opaque text; their bytes are the HMAC key.
public struct AccessPolicy: Sendable, Equatable {
    /// Up to 256 characters.
    public var name: String
    /// Up to 256 characters; a hub generates Base64 of 32 random bytes. Empty asks for a new one.
    public var primaryKey: String
    /// The same; two keys let an operator change one while the other is in use.
    public var secondaryKey: String
    /// What the keys may do. Manage stands with Listen and Send.
    public var rights: AccessRights
    /// When it was made.
    public var created: Timestamp
    /// When it was changed last.
    public var modified: Timestamp

    /// A policy.
    public init(
        name: String,
        primaryKey: String = "",
        secondaryKey: String = "",
        rights: AccessRights,
        created: Timestamp = Timestamp(milliseconds: 0),
        modified: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.name = name
        self.primaryKey = primaryKey
        self.secondaryKey = secondaryKey
        self.rights = rights
        self.created = created
        self.modified = modified
    }

    /// The policies that a hub has when none are named.
    public static let listenName = "DefaultListenSharedAccessSignature",
        fullName = "DefaultFullSharedAccessSignature"
    /// The policy of the namespace.
    public static let rootName = "RootManageSharedAccessKey"
}

/// What a key may do at a hub (protocol reference, section 2.5).
package struct AccessRights: OptionSet, Sendable, Hashable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    package static let listen = AccessRights(rawValue: 1)
    package static let send = AccessRights(rawValue: 2)
    package static let manage = AccessRights(rawValue: 4)

    package var text: String {
        [(AccessRights.listen, "Listen"), (.manage, "Manage"), (.send, "Send")]
            .filter { contains($0.0) }.map(\.1).joined(separator: ", ")
    }
}

/// A named pair of keys with its rights. Keys are opaque text; their bytes are the HMAC key.
package struct AccessPolicy: Sendable, Equatable {
    package var name: String
    package var primaryKey: String
    package var secondaryKey: String
    package var rights: AccessRights

    package init(name: String, primaryKey: String, secondaryKey: String, rights: AccessRights) {
        self.name = name
        self.primaryKey = primaryKey
        self.secondaryKey = secondaryKey
        self.rights = rights
    }

    package static let listenName = "DefaultListenSharedAccessSignature"
    package static let fullName = "DefaultFullSharedAccessSignature"
}

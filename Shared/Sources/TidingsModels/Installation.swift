/// A template of an installation.
public struct InstallationTemplate: Equatable, Sendable {
    /// The key in the installation's `templates`; it is also a tag of the template's registration.
    public var name: String
    /// JSON or XML text with expressions.
    public var body: String
    /// `X-WNS-*`, `X-WindowsPhone-Target`, `apns-*`.
    public var headers: [RegistrationTemplate.Header]
    /// Apple: a date, Unix seconds or an expression.
    public var expiry: String?
    /// Tags of this template alone.
    public var tags: [HubTag]

    /// A template; the hub checks it when the installation is stored.
    public init(
        name: String,
        body: String,
        headers: [RegistrationTemplate.Header] = [],
        expiry: String? = nil,
        tags: [HubTag] = []
    ) {
        self.name = name
        self.body = body
        self.headers = headers
        self.expiry = expiry
        self.tags = tags
    }
}

/// Windows: a tile with a channel, tags and templates of its own.
public struct SecondaryTile: Equatable, Sendable {
    /// The key in the installation's `secondaryTiles`.
    public var name: String
    /// The tile's channel.
    public var handle: PlatformHandle
    /// True once the platform called the channel dead.
    public var isChannelExpired: Bool
    /// Tags of the tile.
    public var tags: [HubTag]
    /// Templates of the tile.
    public var templates: [InstallationTemplate]

    /// A tile.
    public init(
        name: String,
        handle: PlatformHandle,
        isChannelExpired: Bool = false,
        tags: [HubTag] = [],
        templates: [InstallationTemplate] = []
    ) {
        self.name = name
        self.handle = handle
        self.isChannelExpired = isChannelExpired
        self.tags = tags
        self.templates = templates
    }
}

/// One app on one device, keyed by an id of the client's choice: one handle, many templates
/// (protocol reference, section 4).
public struct Installation: Equatable, Sendable {
    /// Up to ``idByteCountMax`` bytes without control characters.
    public var id: String
    /// Whose device it is: characters of a tag, and `=`.
    public var userID: String?
    /// The device.
    public var handle: PlatformHandle
    /// Browsers: the channel was given as JSON text, and is given back so. .NET and Java read nothing else.
    public var isChannelText: Bool
    /// True once the platform called the handle dead; a new handle or a new PUT clears it.
    public var isChannelExpired: Bool
    /// ``Timestamp/never`` for no end.
    public var expires: Timestamp
    /// Tags of every registration of the installation.
    public var tags: [HubTag]
    /// Extra values for templates.
    public var pushVariables: [String: String]
    /// In the order given; names are unique.
    public var templates: [InstallationTemplate]
    /// In the order given; names are unique.
    public var secondaryTiles: [SecondaryTile]

    /// The longest id in bytes.
    public static let idByteCountMax = 256

    /// An installation.
    public init(
        id: String,
        handle: PlatformHandle,
        userID: String? = nil,
        isChannelText: Bool = false,
        isChannelExpired: Bool = false,
        expires: Timestamp = .never,
        tags: [HubTag] = [],
        pushVariables: [String: String] = [:],
        templates: [InstallationTemplate] = [],
        secondaryTiles: [SecondaryTile] = []
    ) {
        self.id = id
        self.handle = handle
        self.userID = userID
        self.isChannelText = isChannelText
        self.isChannelExpired = isChannelExpired
        self.expires = expires
        self.tags = tags
        self.pushVariables = pushVariables
        self.templates = templates
        self.secondaryTiles = secondaryTiles
    }
}

/// Which registration of an installation a derived registration is.
public struct InstallationSlot: Hashable, Sendable {
    /// The installation's id.
    public var installation: String
    /// Nil for the installation's own handle.
    public var tile: String?
    /// Nil for the native registration.
    public var template: String?

    package init(installation: String, tile: String? = nil, template: String? = nil) {
        self.installation = installation
        self.tile = tile
        self.template = template
    }
}

extension HubTag {
    /// `$InstallationId:{…}`; nil when the id holds a character that no tag can.
    package static func installation(_ id: String) -> HubTag? { HubTag(system: "$InstallationId:{\(id)}") }
    /// `$UserId:{…}`; nil when the id holds a character that no tag can.
    package static func user(_ id: String) -> HubTag? { HubTag(system: "$UserId:{\(id)}") }
    /// Only the hub sets those.
    package var isSystem: Bool { text.utf8.first == UInt8(ascii: "$") }

    /// Reads the comma-separated form without checking the tags.
    package static func uncheckedList(_ text: String) -> [HubTag] {
        var seen = Set<HubTag>()
        return text.split(separator: ",").compactMap { part in
            let trimmed = part.drop { $0.isWhitespace }
            let end = trimmed.lastIndex { !$0.isWhitespace }
            guard let end else { return nil }
            let tag = HubTag(unchecked: String(trimmed[...end]))
            return seen.insert(tag).inserted ? tag : nil
        }
    }
}

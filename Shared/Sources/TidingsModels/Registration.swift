/// The id of a registration: three integers joined by `-`; opaque to clients.
public struct RegistrationID: Hashable, Sendable, CustomStringConvertible {
    /// The text.
    public let text: String

    /// Nil unless the text has at most 128 characters of the form `<digits>-<digits>-<digits>`.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard text.utf8.count <= 128, parts.count == 3,
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        else { return nil }
        self.text = text
    }

    package init(unchecked text: String) { self.text = text }

    /// A fresh id. Knowing one is the capability to change it, so it holds 126 random bits.
    package static func random(using generator: inout some RandomNumberGenerator) -> RegistrationID {
        let first = UInt64.random(in: 0..<(1 << 63), using: &generator)
        let second = UInt64.random(in: 0..<(1 << 63), using: &generator)
        return RegistrationID(unchecked: "\(first)-\(second)-1")
    }

    /// The text.
    public var description: String { text }
}

/// The template of a template registration.
public struct RegistrationTemplate: Equatable, Sendable {
    /// One header of a Windows, Windows Phone or Apple template, whose value may be an expression.
    public struct Header: Equatable, Sendable {
        /// The header name.
        public var name: String
        /// A literal or an expression.
        public var value: String

        /// A header.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Up to 200 characters, chosen by the app.
    public var name: String?
    /// JSON or XML text with expressions.
    public var body: String
    /// `WnsHeaders`, `MpnsHeaders` or `ApnsHeaders`.
    public var headers: [Header]
    /// Apple: a date, Unix seconds or an expression.
    public var expiry: String?
    /// Apple: a priority or an expression.
    public var priority: String?

    /// A template; ``HubCore`` checks it when it is stored.
    public init(
        name: String? = nil,
        body: String,
        headers: [Header] = [],
        expiry: String? = nil,
        priority: String? = nil
    ) {
        self.name = name
        self.body = body
        self.headers = headers
        self.expiry = expiry
        self.priority = priority
    }
}

/// What a client states about a registration: one handle bound to tags, and perhaps a template.
public struct RegistrationContent: Equatable, Sendable {
    /// The device.
    public var handle: PlatformHandle
    /// Without repeats, in the order given.
    public var tags: [HubTag]
    /// Extra values for templates.
    public var pushVariables: [String: String]
    /// Nil for a native registration.
    public var template: RegistrationTemplate?
    /// Windows: the secondary tile.
    public var secondaryTileName: String?

    /// The content of a registration.
    public init(
        handle: PlatformHandle,
        tags: [HubTag] = [],
        pushVariables: [String: String] = [:],
        template: RegistrationTemplate? = nil,
        secondaryTileName: String? = nil
    ) {
        self.handle = handle
        self.tags = tags
        self.pushVariables = pushVariables
        self.template = template
        self.secondaryTileName = secondaryTileName
    }
}

/// A stored registration.
public struct Registration: Equatable, Sendable {
    /// Its id.
    public var id: RegistrationID
    /// 1 when created, plus 1 with each update.
    public var etag: Int
    /// ``Timestamp/never`` unless the hub limits the life of registrations.
    public var expires: Timestamp
    /// The last create or update.
    public var updated: Timestamp
    /// What the client stated.
    public var content: RegistrationContent

    /// A stored registration.
    public init(
        id: RegistrationID,
        etag: Int,
        expires: Timestamp,
        updated: Timestamp,
        content: RegistrationContent
    ) {
        self.id = id
        self.etag = etag
        self.expires = expires
        self.updated = updated
        self.content = content
    }
}

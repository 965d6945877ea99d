/// A device's registration with the app back end, as the tutorials' client sends it
/// (`PUT /api/register/{id}`, member names in Pascal case on the wire).
public struct DeviceRegistration: Equatable, Sendable {
    /// `apns`, `fcm` or `gcm`, `wns`, `mpns`.
    public var platform: String
    /// The platform handle.
    public var handle: String
    /// Tags besides `username:`, which only the back end sets.
    public var tags: [String]

    /// A device registration.
    public init(platform: String, handle: String, tags: [String] = []) {
        self.platform = platform
        self.handle = handle
        self.tags = tags
    }
}

/// An item that the app back end stores and a device fetches by id: a secure payload or a rich one.
///
/// The tutorials' item with its five members. In a file that imports full Foundation write
/// `TidingsModels.Notification`.
public struct Notification: Equatable, Sendable {
    /// A positive 31-bit integer, since the tutorials' client reads the id as one.
    public var id: Int32
    /// The text that is shown at once; empty for a secure item.
    public var message: String
    /// `img`, `url`, `sound`, `coupon`, or a team's own word; empty for a secure item.
    public var richType: String
    /// The secret text, or a rich item's URL or coupon text; empty when the content is a file.
    public var payload: String
    /// True once the owner fetched it.
    public var read: Bool

    /// A stored item.
    public init(id: Int32, message: String, richType: String, payload: String, read: Bool) {
        self.id = id
        self.message = message
        self.richType = richType
        self.payload = payload
        self.read = read
    }
}

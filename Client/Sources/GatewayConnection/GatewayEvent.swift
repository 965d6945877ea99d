package import DeviceLink

/// What a gateway connection tells its owner, in order.
package enum GatewayEvent: Sendable {
    /// Identified. The device keeps `uaid` and says it at the next start.
    case connected(uaid: String)
    /// `reason` is for people. The connection dials again by itself.
    case disconnected(reason: String)
    case registered(channelID: String, handle: String)
    case registrationRefused(channelID: String, status: Int, reason: String)
    case unregistered(channelID: String)
    /// To be acknowledged once it is stored.
    case notification(DeviceNotification)
}

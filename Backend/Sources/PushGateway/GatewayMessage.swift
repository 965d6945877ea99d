package import TidingsModels

/// One push for one handle, whatever door it came through.
package struct GatewayMessage: Sendable, Equatable {
    package var handle: PlatformHandle
    package var data: [UInt8]
    /// What the device sees beside the data.
    package var headers: [String: String]
    /// When it is no longer worth delivering. Nil: deliver now or drop, never store.
    package var expires: Timestamp?
    /// A newer message with the same key replaces a stored one of the handle.
    package var collapseKey: String?
    /// Repeats of the same id, handle and data are taken once.
    package var deliveryID: String?

    /// What the device is told of the platform: nothing for Web Push, which is autopush's own.
    var linkPlatform: Platform? { handle.platform == .browser ? nil : handle.platform }

    package init(
        handle: PlatformHandle,
        data: [UInt8],
        headers: [String: String] = [:],
        expires: Timestamp?,
        collapseKey: String? = nil,
        deliveryID: String? = nil
    ) {
        self.handle = handle
        self.data = data
        self.headers = headers
        self.expires = expires
        self.collapseKey = collapseKey
        self.deliveryID = deliveryID
    }
}

/// What became of a message at the mailbox.
package enum PostResult: Sendable, Equatable {
    /// Stored, or with the connected device; `messageID` is unique.
    case accepted(messageID: String)
    /// A repeat of a message that was taken before.
    case repeated
    /// Not to be stored, and the device is not connected.
    case dropped
    /// The handle was never issued here.
    case unknownHandle
    /// The handle was given back.
    case expiredHandle(since: Timestamp)
    /// The device has as many messages waiting as it may.
    case full
    /// Not taken: the answer that was asked for with ``FaultTable``.
    case faulted(FaultAnswer)
}

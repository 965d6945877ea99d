package import DeviceLink
package import TidingsModels

/// A message that waits for its device.
package struct StoredMessage: Sendable {
    package var sequence: Int64
    package var notification: DeviceNotification
}

/// Where a message ended up, for the router.
package struct Posted: Sendable {
    package var result: PostResult
    /// The device to wake.
    package var uaid: String?

    package init(result: PostResult, uaid: String? = nil) {
        self.result = result
        self.uaid = uaid
    }
}

/// Devices, their handles and what waits for them. Writes are on disk when a call returns.
package protocol Mailbox: Sendable {
    /// The handle of a channel; the same one when it was asked for before.
    func register(
        uaid: String,
        channelID: String,
        platform: Platform,
        handle: PlatformHandle,
        now: Timestamp
    ) async throws -> PlatformHandle
    func unregister(uaid: String, channelID: String, now: Timestamp) async throws
    /// True when the device registered a handle before.
    func isKnown(uaid: String) async throws -> Bool
    /// The device and channel of a live handle.
    func owner(_ handle: PlatformHandle) async throws -> HandleOwner?
    func post(_ message: GatewayMessage, version: String, now: Timestamp) async throws -> Posted
    /// Unexpired messages above a sequence, in order.
    func pending(uaid: String, after: Int64, countMax: Int, now: Timestamp) async throws -> [StoredMessage]
    func acknowledge(uaid: String, versions: [String]) async throws
    /// Takes a message back that no device has acknowledged; false when there is none.
    func cancel(version: String) async throws -> Bool
    /// Removes what waits for a handle and has headers that fit; returns how many messages.
    func remove(
        _ handle: PlatformHandle,
        where fits: @escaping @Sendable ([String: String]) -> Bool
    ) async throws -> Int
    /// Subscribes a live handle to a topic; false when it has as many as it may.
    func subscribe(_ handle: PlatformHandle, to topic: String) async throws -> Bool
    /// False when there was no subscription.
    func unsubscribe(_ handle: PlatformHandle, from topic: String) async throws -> Bool
    /// Topics of a handle, in order.
    func topics(of handle: PlatformHandle) async throws -> [String]
    /// Live handles that are subscribed to a topic.
    func subscribers(of topic: String) async throws -> [PlatformHandle]
    /// Every live handle of a platform.
    func liveHandles(_ platform: Platform) async throws -> [PlatformHandle]
    /// Versions of the broadcasts.
    func broadcasts() async throws -> [BroadcastID: String]
    /// `onCommit` runs in the order of the commits, before this returns. False when there are too many others.
    func setBroadcast(
        _ id: BroadcastID,
        version: String,
        onCommit: @escaping @Sendable () -> Void
    ) async throws -> Bool
    /// False, and no `onCommit`, when there is none.
    func removeBroadcast(_ id: BroadcastID, onCommit: @escaping @Sendable () -> Void) async throws -> Bool
    /// Messages that wait for their devices.
    func messageCount() async throws -> Int
    /// Drops what has expired; returns how many messages.
    func sweep(now: Timestamp) async throws -> Int
}

package enum HandleOwner: Sendable, Equatable {
    case live(uaid: String, channelID: String)
    case removed(since: Timestamp)
}

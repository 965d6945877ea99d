import DeviceLink
import EventLoops
import Synchronization
import WebSocketFraming

/// The versions of the broadcasts, and the connections that follow each: a change costs its subscribers, whoever else is
/// connected.
///
/// Versions follow the mailbox's commits. A device subscribes on its own loop, where it is also told of changes: an answer and
/// the changes after it leave in the order of this table.
package final class BroadcastTable: Sendable {
    /// Broadcasts of a gateway; more are refused.
    package static let countMax = 1000

    private struct Entry {
        var version: String
        var subscribers: [ObjectIdentifier: DeviceConnection] = [:]
    }
    private let entries: Mutex<[BroadcastID: Entry]>

    init(_ versions: [BroadcastID: String]) { entries = Mutex(versions.mapValues { Entry(version: $0) }) }

    /// Every broadcast with its version and the number of its subscribers.
    var all: [(id: BroadcastID, version: String, subscriberCount: Int)] {
        entries.withLock { entries in
            entries.map { ($0.key, $0.value.version, $0.value.subscribers.count) }
                .sorted { $0.id.text < $1.id.text }
        }
    }

    /// Subscriptions of all devices.
    package var subscriptionCount: Int {
        entries.withLock { $0.values.reduce(0) { $0 + $1.subscribers.count } }
    }

    /// The versions of those that exist, which the device follows from now on, and those that do not.
    func subscribe(
        _ connection: DeviceConnection,
        to ids: some Sequence<BroadcastID>
    ) -> (versions: [BroadcastID: String], unknown: Set<BroadcastID>) {
        entries.withLock { entries in
            var (versions, unknown) = ([BroadcastID: String](), Set<BroadcastID>())
            for id in ids {
                guard let version = entries[id]?.version else {
                    unknown.insert(id)
                    continue
                }
                entries[id]?.subscribers[ObjectIdentifier(connection)] = connection
                versions[id] = version
            }
            return (versions, unknown)
        }
    }

    func unsubscribe(_ connection: DeviceConnection, from ids: some Sequence<BroadcastID>) {
        entries.withLock { entries in
            for id in ids { entries[id]?.subscribers[ObjectIdentifier(connection)] = nil }
        }
    }

    /// Takes a version that is on disk, and tells the subscribers.
    func set(_ id: BroadcastID, _ version: String) {
        let subscribers = entries.withLock { entries in
            entries[id, default: Entry(version: version)].version = version
            return entries[id]?.subscribers ?? [:]
        }
        guard !subscribers.isEmpty else { return }
        let frame = GatewayFrame.broadcast(BroadcastNews(versions: [id: version])).text
        let bytes = WebSocketEncoder.frame(.text, Array(frame.utf8))
        for (_, group) in Dictionary(grouping: subscribers.values, by: { ObjectIdentifier($0.loop) }) {
            group.first?.loop.execute {
                for connection in group { connection.broadcastChanged(id, version, bytes) }
            }
        }
    }

    /// Devices that followed it hear no more of it until they subscribe again.
    func remove(_ id: BroadcastID) { entries.withLock { $0[id] = nil } }
}

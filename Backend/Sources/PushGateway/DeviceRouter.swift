import DeviceLink
import EventLoops
import Synchronization

/// Which devices are connected. The newest connection of a device wins.
final class DeviceRouter: Sendable {
    /// Guards the directory alone; calls to a connection go through its loop.
    private let connections = Mutex<[String: DeviceConnection]>([:])

    /// Takes a connection up; an older one of the device is closed.
    func connected(_ uaid: String, _ connection: DeviceConnection) {
        let older = connections.withLock { connections in
            defer { connections[uaid] = connection }
            return connections[uaid]
        }
        guard let older, older !== connection else { return }
        older.loop.execute { older.replaced() }
    }

    func disconnected(_ uaid: String, _ connection: DeviceConnection) {
        connections.withLock { if $0[uaid] === connection { $0[uaid] = nil } }
    }

    /// Tells a device that its mailbox has news.
    func wake(_ uaid: String) {
        guard let connection = connections.withLock({ $0[uaid] }) else { return }
        connection.loop.execute { connection.mailArrived() }
    }

    /// Hands over a message that is not stored; false when the device is not connected.
    func deliverNow(_ uaid: String, _ notification: DeviceNotification) -> Bool {
        guard let connection = connections.withLock({ $0[uaid] }) else { return false }
        connection.loop.execute { connection.deliver(notification) }
        return true
    }

    func isConnected(_ uaid: String) -> Bool { connections.withLock { $0[uaid] != nil } }

    var count: Int { connections.withLock { $0.count } }
}

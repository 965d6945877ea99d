import DeviceLink
import Glibc
package import HTTPMessages
import WebSocketFraming

/// A device that says hello and never reads again: what is sent to it stays in the gateway. Used by one task at a time.
package final class MuteDevice {
    /// POLLRDHUP of poll(2), which the header shows only to GNU sources.
    private static let peerClosed: Int16 = 0x2000
    private let uaid: String
    private let gateway: HTTPURL
    private var descriptor: Int32 = -1
    package private(set) var connectCount = 0

    package init(uaid: String, gateway: HTTPURL) {
        self.uaid = uaid
        self.gateway = gateway
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Dials when there is no connection, or the gateway has ended it.
    package func keepConnected() throws {
        if descriptor >= 0 {
            var poll = pollfd(fd: descriptor, events: Self.peerClosed, revents: 0)
            if Glibc.poll(&poll, 1, 0) == 0 { return }
            close(descriptor)
        }
        // The gateway's own queue fills soon.
        descriptor = try LoopbackSocket.connect(port: gateway.port, readsLittle: true)
        connectCount += 1
        let bytes = DeviceHello.bytes(host: gateway.authority, uaid: uaid)
        guard write(descriptor, bytes, bytes.count) == bytes.count else {
            throw WorldFailure("write: \(String(cString: strerror(errno)))")
        }
    }
}

/// What a device sends first: the upgrade, and hello behind it, which is read once the upgrade is answered. The mask is zero.
package enum DeviceHello {
    package static func bytes(host: String, uaid: String?) -> [UInt8] {
        let upgrade =
            "GET / HTTP/1.1\r\nHost: \(host)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        let hello = Array(DeviceFrame.hello(uaid: uaid).text.utf8)
        return Array(upgrade.utf8) + WebSocketEncoder.frame(.text, hello, mask: [0, 0, 0, 0])
    }
}

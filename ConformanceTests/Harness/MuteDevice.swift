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
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw WorldFailure("socket: \(String(cString: strerror(errno)))") }
        // The smallest window that the kernel gives: the gateway's own queue fills soon.
        var size: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(gateway.port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw WorldFailure("connect: \(String(cString: strerror(errno)))") }
        connectCount += 1
        let upgrade =
            "GET / HTTP/1.1\r\nHost: \(gateway.authority)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        let hello = WebSocketEncoder.frame(
            .text,
            Array(DeviceFrame.hello(uaid: uaid).text.utf8),
            mask: [1, 2, 3, 4]
        )
        // Frames behind the upgrade are read once it is answered.
        let bytes = Array(upgrade.utf8) + hello
        guard write(descriptor, bytes, bytes.count) == bytes.count else {
            throw WorldFailure("write: \(String(cString: strerror(errno)))")
        }
    }
}

import Glibc

/// Blocking TCP on 127.0.0.1, for peers that do what no library does.
package enum LoopbackSocket {
    /// - Parameter readsLittle: The smallest window that the kernel gives, so that whoever sends notices soon that nobody reads.
    package static func connect(port: Int, readsLittle: Bool = false) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw WorldFailure("socket: \(String(cString: strerror(errno)))") }
        if readsLittle {
            var size: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        guard withAddress(port, { Glibc.connect(descriptor, $0, $1) }) == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw WorldFailure("connect: \(reason)")
        }
        return descriptor
    }

    /// A listening descriptor on a free port.
    static func listen() throws -> (descriptor: Int32, port: Int) {
        let bound = try bind(isShared: false)
        guard Glibc.listen(bound.descriptor, 16) == 0 else {
            let reason = String(cString: strerror(errno))
            close(bound.descriptor)
            throw WorldFailure("listen: \(reason)")
        }
        return bound
    }

    /// A descriptor that has a free port and does not listen.
    /// - Parameter isShared: A server may listen on that port beside it.
    fileprivate static func bind(isShared: Bool) throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(
            AF_INET,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue),
            0
        )
        guard descriptor >= 0 else { throw WorldFailure("socket: \(String(cString: strerror(errno)))") }
        var one: Int32 = 1
        if isShared {
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code =
            withAddress(0) { Glibc.bind(descriptor, $0, $1) }
            | withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
        guard code == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw WorldFailure("bind: \(reason)")
        }
        return (descriptor, Int(in_port_t(bigEndian: address.sin_port)))
    }

    private static func withAddress(
        _ port: Int,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// A port of 127.0.0.1 that stays ours while the server on it is down, so that the server can come back to it.
///
/// Bound with SO_REUSEADDR and never listening: Linux lets a server that sets the option listen beside it, and gives the port
/// to nobody who asks for any port, neither to a listener nor to an outgoing connection.
package final class ReservedPort: Sendable {
    package let number: Int
    private let descriptor: Int32

    package init() throws { (descriptor, number) = try LoopbackSocket.bind(isShared: true) }

    deinit { close(descriptor) }
}

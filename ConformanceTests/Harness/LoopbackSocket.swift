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
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code =
            withAddress(0) { bind(descriptor, $0, $1) } | Glibc.listen(descriptor, 16)
            | withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
        guard code == 0 else {
            let reason = String(cString: strerror(errno))
            close(descriptor)
            throw WorldFailure("listen: \(reason)")
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

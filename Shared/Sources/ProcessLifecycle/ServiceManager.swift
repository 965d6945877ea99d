import Glibc

/// Tells systemd about the process (sd_notify(3)), when it asked to be told.
package enum ServiceManager {
    package static func notify(_ state: String) {
        guard let path = environment("NOTIFY_SOCKET"), path.utf8.count < 107 else { return }
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return }
        defer { close(socket) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { storage in
            for (index, byte) in path.utf8.enumerated() { storage[index] = byte }
            // A leading @ stands for the abstract namespace, whose first byte is zero.
            if storage[0] == UInt8(ascii: "@") { storage[0] = 0 }
        }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + path.utf8.count)
        let bytes = Array(state.utf8)
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = bytes.withUnsafeBytes {
                    sendto(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL), address, length)
                }
            }
        }
    }
}

import Glibc
import HTTPMessages
import Testing
import TidingsConformance

/// What a World promises of its server's restart.
@Suite("A restarted server")
struct RestartedServer {
    @Test("its ports stay its own while it is down, and it comes back to them")
    func ports() async throws {
        try await World.run { world in
            let urls = [try world.backendURL, try world.hubURL, try world.gatewayURL]
            await world.stopServer()
            for url in urls {
                let port = try #require(HTTPURL(url)?.port)
                let stranger = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                defer { close(stranger) }
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_port = in_port_t(port).bigEndian
                address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
                let bound = withUnsafePointer(to: &address) {
                    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        bind(stranger, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                    }
                }
                #expect(bound == -1 && errno == EADDRINUSE)
            }
            try await world.startServer()
            #expect(urls == [try world.backendURL, try world.hubURL, try world.gatewayURL])
        }
    }
}

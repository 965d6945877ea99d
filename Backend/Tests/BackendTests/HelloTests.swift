import DeviceLink
import HTTPMessages
import ProcessLifecycle
import Synchronization
import Testing
import TidingsConformance
import TidingsModels
import WebSocketFraming

@testable import PushGateway

/// From the upgrade to the first look into the mailbox, and what keeps a connection alive afterwards.
@Suite("Hellos", .serialized, .timeLimit(.minutes(4)))
struct HelloTests {
    private func close(_ peer: LinkPeer) async -> WebSocketEvent? {
        while let event = await peer.next() { if case .close = event { return event } }
        return nil
    }

    @Test("no hello in time closes with 1011")
    func handshakeTimeout() async throws {
        var times = GatewayLinkTimes()
        times.hello = .milliseconds(20)
        try await TestGateway.run(times) { gateway in
            let event = await close(try await LinkPeer.connect(to: gateway.url))
            #expect(event == .close(code: 1011, reason: "HandshakeTimeout"))
        }
    }

    @Test("an application ping is answered, in both spellings; one that follows too fast closes with 1011")
    func applicationPing() async throws {
        var times = GatewayLinkTimes()
        times.pingIntervalMin = .zero
        try await TestGateway.run(times) { gateway in
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            for text in ["{}", "{\"messageType\":\"ping\"}"] {
                peer.send(text)
                let event = await peer.next()
                #expect(event == .text("{}"))
            }
        }
        try await TestGateway.run { gateway in
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            peer.send("{}")
            peer.send("{}")
            let events = [await peer.next(), await peer.next()]
            #expect(events == [.text("{}"), .close(code: 1011, reason: "SM")])
        }
    }

    @Test("a quiet device is pinged as long as it answers, and then dropped")
    func keepalive() async throws {
        var times = GatewayLinkTimes()
        times.quiet = .milliseconds(20)
        times.pong = .seconds(1)
        try await TestGateway.run(times) { gateway in
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            for _ in 0..<3 {
                let event = await peer.next()
                #expect(event == .ping([]))
                peer.sendPong()
            }
            let events = [await peer.next(), await peer.next(), await peer.next()]
            #expect(events == [.ping([]), .close(code: 1011, reason: "PongTimeout"), nil])
        }
    }
}

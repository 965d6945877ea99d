import DeviceLink
import EventLoops
import Foundation
import Glibc
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

    @Test("a hello that came while the loop was busy is read before its deadline counts")
    func busyLoop() async throws {
        var times = GatewayLinkTimes()
        times.hello = .milliseconds(300)
        try await TestGateway.run(times) { gateway in
            let loops = EventLoopGroup.shared.loops
            // One try whose deadline passes before the loops are busy proves nothing.
            for _ in 0..<5 {
                let answer = try await Self.onOwnThread { try Self.helloWhileBusy(loops, gateway.url.port) }
                // Text, where a close frame would begin with 0x88.
                if answer == 0x81 { return }
            }
            Issue.record("a hello that was there in time was not read")
        }
    }

    private static func onOwnThread<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try work() }) }
        }
    }

    /// Says hello while every loop is busy, and goes on once the deadline has passed.
    /// - Returns: The first byte of the answer.
    private static func helloWhileBusy(_ loops: [EventLoop], _ port: Int) throws -> UInt8? {
        // No loop of ours: they are all busy.
        let socket = try LoopbackSocket.connect(port: port)
        defer { Glibc.close(socket) }
        let handshake =
            "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        let hello = WebSocketEncoder.frame(
            .text,
            Array(DeviceFrame.hello(uaid: nil).text.utf8),
            mask: [0, 0, 0, 0]
        )
        write(socket, handshake, handshake.utf8.count)
        var buffer = [UInt8](repeating: 0, count: 4096)
        // The upgrade; from here the deadline runs.
        guard read(socket, &buffer, buffer.count) > 0 else { return nil }
        let (isBusy, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        for loop in loops {
            loop.execute {
                isBusy.signal()
                mayGoOn.wait()
            }
        }
        for _ in loops { isBusy.wait() }
        // The deadline passes while nothing is read.
        usleep(400_000)
        write(socket, hello, hello.count)
        for _ in loops { mayGoOn.signal() }
        return read(socket, &buffer, buffer.count) > 0 ? buffer[0] : nil
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
        times.pong = .seconds(4)
        try await TestGateway.run(times) { gateway in
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            // The second comes once the deadline of the first has passed.
            for _ in 0..<2 {
                let event = await peer.next()
                #expect(event == .ping([]))
                peer.sendPong()
            }
        }
        times.pong = .milliseconds(20)
        try await TestGateway.run(times) { gateway in
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            let events = [await peer.next(), await peer.next(), await peer.next()]
            #expect(events == [.ping([]), .close(code: 1011, reason: "PongTimeout"), nil])
        }
    }

    @Test("so many hellos are under way, the others come in their order, and who withdraws has no turn")
    func gate() throws {
        let gate = HelloGate()
        let places = Mutex<[Int: HelloGate.Place]>([:])
        let order = Mutex<[Int]>([])
        let most = HelloGate.countMax
        var tickets: [Int] = []
        for index in 0..<(most + 5) {
            tickets.append(
                gate.enter { place in
                    order.withLock { $0.append(index) }
                    places.withLock { $0[index] = place }
                }
            )
        }
        func leave(_ index: Int) {
            // Outside of the lock: the next one enters at once.
            let place = places.withLock { $0.removeValue(forKey: index) }
            withExtendedLifetime(place) {}
        }
        #expect(gate.counts == (5, most))
        gate.withdraw(tickets[most + 1])
        // Too late: it has a place.
        gate.withdraw(tickets[0])
        #expect(gate.counts == (4, most))
        for index in [3, 0] { leave(index) }
        #expect(order.withLock { $0 } == Array(0..<most) + [most, most + 2])
        #expect(gate.counts == (2, most))
        for index in 0..<(most + 5) { leave(index) }
        #expect(order.withLock { $0.suffix(2) } == [most + 3, most + 4])
        #expect(gate.counts == (0, 0))
        // The turn goes on where it was.
        for index in 0...most {
            tickets.append(gate.enter { place in places.withLock { $0[index] = place } })
        }
        #expect(gate.counts == (1, most))
        leave(0)
        #expect(gate.counts == (0, most))
    }

    @Test(
        "a hello that waits for its turn outlives the deadline for hello; one whose connection ends leaves the queue"
    )
    func waiting() async throws {
        try await TestGateway.withMailbox { mailbox in
            let (opened, opener) = AsyncStream.makeStream(of: Void.self)
            let counted = CountedMailbox(mailbox, heldUntil: Task { for await _ in opened {} })
            var times = GatewayLinkTimes()
            times.hello = .seconds(3)
            let gateway = try await TestGateway.start(counted, times)
            /// The counts are all that tells it; nobody is told of a change.
            func counts(_ waiting: Int, _ underWay: Int) async throws {
                while gateway.gateway.hellos.counts != (waiting, underWay) {
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            func peer(_ index: Int) async throws -> LinkPeer {
                let peer = try await LinkPeer.connect(to: gateway.url)
                let digits = String(index, radix: 16)
                peer.send(
                    .hello(uaid: String(repeating: "0", count: 32 - digits.count) + digits)
                )
                return peer
            }
            var peers: [LinkPeer] = []
            for index in 0..<HelloGate.countMax { peers.append(try await peer(index)) }
            try await counts(0, HelloGate.countMax)
            var leaving: LinkPeer? = try await peer(100)
            try await counts(1, HelloGate.countMax)
            peers.append(try await peer(101))
            try await counts(2, HelloGate.countMax)
            withExtendedLifetime(leaving) {}
            leaving = nil
            try await counts(1, HelloGate.countMax)
            // Who claims no id is not looked up, and waits for nobody.
            _ = try await LinkPeer.hello(to: gateway.url)
            // The deadline of one that came later has passed.
            let late = await close(try await LinkPeer.connect(to: gateway.url))
            #expect(late == .close(code: 1011, reason: "HandshakeTimeout"))
            #expect(counted.lookUpCount == HelloGate.countMax)
            opener.finish()
            for peer in peers {
                guard case .hello = try await peer.nextFrame() else { throw WorldFailure("no hello") }
            }
            #expect(counted.lookUpCount == HelloGate.countMax + 1)
            #expect(counted.peak == HelloGate.countMax)
            try await counts(0, 0)
            await gateway.stop()
        }
    }

    @Test(
        "thousands of devices come back at one moment: each gets its hello and its message once, with few look-ups at a time"
    )
    func storm() async throws {
        let deviceCount = 2000
        try await TestGateway.withMailbox { mailbox in
            // The gateway comes back to it.
            let port = try ReservedPort()
            let before = try await TestGateway.start(mailbox, port: port.number)
            let devices = (0..<deviceCount).map { RawDevice($0, .apns, gateway: before.url) }
            for device in devices { device.connect() }
            for device in devices { _ = await device.handle() }
            // Past the gateway, which would tell the device. Side by side: they share commits.
            try await withThrowingTaskGroup { group in
                for device in devices {
                    group.addTask {
                        let handle = try PlatformHandle(shown: await device.handle(), platform: .apns)
                        let message = GatewayMessage(handle: handle, data: [1], expires: .never)
                        let version = "to \(handle.text)"
                        let now = SystemTimeSource().now
                        let posted = try await mailbox.post(message, version: version, now: now)
                        #expect(posted.uaid == device.uaid)
                    }
                }
                try await group.waitForAll()
            }
            await before.stop()
            #expect(devices.allSatisfy { $0.receivedCount == 0 })

            let counted = CountedMailbox(mailbox)
            let after = try await TestGateway.start(counted, port: port.number)
            for device in devices { await device.received(1) }
            #expect(counted.peak <= HelloGate.countMax)
            #expect(counted.lookUpCount >= 2 * deviceCount)
            // All acknowledged: nothing would come again.
            while try await mailbox.messageCount() > 0 { try await Task.sleep(for: .milliseconds(5)) }
            #expect(devices.allSatisfy { $0.receivedCount == 1 && $0.repeatCount == 0 })
            #expect(after.gateway.hellos.counts == (0, 0))
            #expect(after.counters["gateway_hellos_total"] >= deviceCount)
            for device in devices { await device.disconnect() }
            await after.stop()
        }
    }
}

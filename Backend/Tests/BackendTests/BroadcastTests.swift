import DeviceLink
import HTTPMessages
import JSONBytes
import ProcessLifecycle
import PushGateway
import SQLiteStorage
import Testing
import TidingsConformance
import TidingsModels
import WebSocketFraming

/// Versions that many devices follow (push services reference, section 6.6).
@Suite("Broadcasts", .timeLimit(.minutes(2)))
struct BroadcastTests {
    private let monitor: BroadcastID
    private let other: BroadcastID
    private let unknown: BroadcastID

    init() throws {
        monitor = try #require(BroadcastID("remote-settings/monitor_changes"))
        other = try #require(BroadcastID("kinto:123"))
        unknown = try #require(BroadcastID("kinto:456"))
    }

    private func news(_ versions: [BroadcastID: String], unknown: Set<BroadcastID> = []) -> GatewayFrame {
        .broadcast(BroadcastNews(versions: versions, unknown: unknown))
    }

    /// The next frame is the answer to a ping: nothing came before it.
    private func expectSilence(_ peer: LinkPeer) async throws {
        peer.send(.ping)
        let frame = try await peer.nextFrame()
        #expect(frame == .pong)
    }

    @Test("hello is answered with the versions that differ from the device's, and the ids that are unknown")
    func hello() async throws {
        try await TestGateway.run { gateway in
            try await gateway.set(monitor.text, "2")
            try await gateway.set(other.text, "7")
            let (_, answer) = try await LinkPeer.hello(
                to: gateway.url,
                broadcasts: [monitor: "1", other: "7", unknown: "1"]
            )
            guard case .hello(_, let broadcasts) = answer else { throw WorldFailure("\(answer)") }
            #expect(broadcasts == BroadcastNews(versions: [monitor: "2"], unknown: [unknown]))
            let (peer, plain) = try await LinkPeer.hello(to: gateway.url)
            guard case .hello(_, let none) = plain else { throw WorldFailure("\(plain)") }
            #expect(none.isEmpty)
            // One that follows nothing hears nothing.
            try await gateway.set(monitor.text, "3")
            try await expectSilence(peer)
        }
    }

    @Test("broadcast_subscribe is answered only when there is something to tell")
    func subscribe() async throws {
        try await TestGateway.run { gateway in
            try await gateway.set(monitor.text, "2")
            let (peer, _) = try await LinkPeer.hello(to: gateway.url)
            peer.send(.broadcastSubscribe([monitor: "2"]))
            try await expectSilence(peer)
            peer.send(.broadcastSubscribe([monitor: "1", unknown: "1"]))
            let frame = try await peer.nextFrame()
            #expect(frame == news([monitor: "2"], unknown: [unknown]))
        }
    }

    @Test("a change is told once to each device that follows it and does not have it")
    func change() async throws {
        try await TestGateway.run { gateway in
            try await gateway.set(monitor.text, "1")
            try await gateway.set(other.text, "1")
            var peers: [LinkPeer] = []
            for index in 0..<8 {
                let (peer, _) = try await LinkPeer.hello(
                    to: gateway.url,
                    broadcasts: index.isMultiple(of: 2) ? [monitor: "1"] : [:]
                )
                if !index.isMultiple(of: 2) { peer.send(.broadcastSubscribe([monitor: "1", other: "1"])) }
                peers.append(peer)
            }
            let (deaf, _) = try await LinkPeer.hello(to: gateway.url, broadcasts: [other: "1"])
            // A subscription has no answer when nothing is new; its connection has read it when it answers this.
            for peer in peers + [deaf] { try await expectSilence(peer) }
            #expect(gateway.gateway.broadcasts.subscriptionCount == 8 + 4 + 1)

            try await gateway.set(monitor.text, "2")
            // The same again is no news, and the next version is.
            try await gateway.set(monitor.text, "2")
            try await gateway.set(monitor.text, "3")
            for peer in peers {
                let frames = [try await peer.nextFrame(), try await peer.nextFrame()]
                #expect(frames == [news([monitor: "2"]), news([monitor: "3"])])
            }
            try await gateway.set(other.text, "2")
            for peer in [deaf, peers[1], peers[3], peers[5], peers[7]] {
                let frame = try await peer.nextFrame()
                #expect(frame == news([other: "2"]))
            }
            // A removed one is not told any more, and is unknown from then on.
            let removed = try await gateway.broadcasts("DELETE", other.text)
            #expect(removed.status == 204)
            try await gateway.set(other.text, "3")
            try await gateway.set(monitor.text, "4")
            let frame = try await peers[1].nextFrame()
            #expect(frame == news([monitor: "4"]))
            #expect(gateway.gateway.broadcasts.subscriptionCount == 8)
        }
    }

    @Test("changes that race leave disk, table and device with the same version")
    func races() async throws {
        try await TestGateway.withMailbox { mailbox in
            let gateway = try await TestGateway.start(mailbox)
            try await gateway.set(monitor.text, "start")
            let (peer, _) = try await LinkPeer.hello(to: gateway.url, broadcasts: [monitor: "start"])
            try await withThrowingTaskGroup { group in
                for index in 0..<50 {
                    group.addTask { try await gateway.set("remote-settings%2Fmonitor_changes", "\(index)") }
                }
                try await group.waitForAll()
            }
            var told: [String] = []
            while told.count < 50 {
                guard case .broadcast(let news) = try await peer.nextFrame() else { continue }
                told.append(news.versions[monitor] ?? "")
            }
            #expect(Set(told) == Set((0..<50).map { "\($0)" }))
            let stored = try await mailbox.broadcasts()
            #expect(stored == [monitor: told.last ?? ""])
            let list = try await gateway.broadcasts("GET").json?["broadcasts"]?.arrayValue
            #expect(list?.first?["version"]?.stringValue == told.last)
            #expect(list?.first?["subscribers"]?.integerValue == 1)
            await gateway.stop()

            let next = try await TestGateway.start(mailbox)
            let (_, answer) = try await LinkPeer.hello(to: next.url, broadcasts: [monitor: "start"])
            guard case .hello(_, let broadcasts) = answer else { throw WorldFailure("\(answer)") }
            #expect(broadcasts.versions == stored)
            await next.stop()
        }
    }

    @Test("what a device may not say closes with 1011")
    func violations() async throws {
        try await TestGateway.run { gateway in
            func close(_ peer: LinkPeer) async -> WebSocketEvent? {
                while let event = await peer.next() { if case .close = event { return event } }
                return nil
            }
            for broadcasts in ["[]", "\"x\"", "{\"a\":1}", "{\"\":\"1\"}"] {
                let peer = try await LinkPeer.connect(to: gateway.url)
                peer.send("{\"messageType\":\"hello\",\"broadcasts\":\(broadcasts)}")
                let event = await close(peer)
                #expect(event == .close(code: 1011, reason: "Json"), "\(broadcasts)")
            }
            let early = try await LinkPeer.connect(to: gateway.url)
            early.send(.broadcastSubscribe([:]))
            let event = await close(early)
            #expect(event == .close(code: 1011, reason: "SM"))

            // As many as one may follow, and one more.
            let most = BroadcastID.countMaxPerDevice
            for index in 0...most { try await gateway.set("b\(index)", "1") }
            let ids = (0...most).compactMap { BroadcastID("b\($0)") }
            let (peer, _) = try await LinkPeer.hello(
                to: gateway.url,
                broadcasts: Dictionary(uniqueKeysWithValues: ids.dropLast().map { ($0, "1") })
            )
            try await expectSilence(peer)
            peer.send(.broadcastSubscribe([ids[most]: "1"]))
            let full = await close(peer)
            #expect(full == .close(code: 1011, reason: "SM"))
            while await peer.next() != nil {}
            // Who is gone follows nothing: the gateway has noticed when it took the next change.
            try await gateway.set("b0", "2")
            #expect(gateway.gateway.broadcasts.subscriptionCount == 0)
        }
    }

    @Test("the operator's mistakes are refused with what is allowed")
    func mistakes() async throws {
        try await TestGateway.run { gateway in
            let long = String(repeating: "x", count: 129)
            for (method, id, body, status, word) in [
                ("PUT", "a", "{\"version\":\"\"}", 400, "version"),
                ("PUT", "a", "{\"version\":1}", 400, "version"),
                ("PUT", "a", "{\"version\":\"\(long)\"}", 400, "128"),
                ("PUT", "a", "{\"version\":\"1\",\"more\":1}", 400, "version"),
                ("PUT", "a", "x", 400, "JSON"),
                ("PUT", long, "{\"version\":\"1\"}", 400, "128"),
                ("PUT", "errors", "{\"version\":\"1\"}", 400, "errors"),
                ("PUT", "a%20b", "{\"version\":\"1\"}", 400, "visible"),
                ("DELETE", "a", nil, 404, "'a'"),
            ] as [(String, String, String?, Int, String)] {
                let answer = try await gateway.broadcasts(method, id, body)
                #expect(answer.status == status, "\(method) \(id) \(body ?? "")")
                #expect(answer.json?["error"]?.stringValue?.contains(word) == true, "\(answer)")
            }
            let form = try await gateway.broadcasts(
                "PUT",
                "a",
                "{\"version\":\"1\"}",
                contentType: "text/plain"
            )
            #expect(form.status == 400)
            let statuses = [
                try await gateway.broadcasts("POST", "a").status,
                try await gateway.broadcasts("DELETE").status,
            ]
            #expect(statuses == [405, 405])
        }
    }

    @Test("more broadcasts than a gateway has room for are refused, and those that exist still change")
    func full() async throws {
        try await TestGateway.withMailbox { mailbox in
            for index in 0..<BroadcastTable.countMax {
                let isSet = try await mailbox.setBroadcast(
                    try #require(BroadcastID("b\(index)")),
                    version: "1"
                ) {}
                #expect(isSet)
            }
            let more = try await mailbox.setBroadcast(monitor, version: "1") { Issue.record("committed") }
            #expect(!more)
            let change = try await mailbox.setBroadcast(try #require(BroadcastID("b0")), version: "2") {}
            #expect(change)
        }
    }

    @Test("a mailbox of the second version is brought forward with what it holds")
    func migration() async throws {
        let folder = try Files.makeScratchFolder("tidings-gateway")
        defer { Files.removeTree(folder) }
        let path = folder + "/gateway.sqlite"
        let old = try Database(
            path: path,
            schema: .init(Array(Database.Schema.mailbox.migrations.prefix(2)))
        )
        try await old.write { connection in
            try connection.run(
                "INSERT INTO channel (platform, handle, uaid, channel_id, created) VALUES ('apns', 'AB', 'u', 'c', 1)"
            )
        }
        old.close()
        let mailbox = try SQLiteMailbox(path: path)
        defer { mailbox.close() }
        let isKnown = try await mailbox.isKnown(uaid: "u")
        #expect(isKnown)
        let none = try await mailbox.broadcasts()
        #expect(none.isEmpty)
        _ = try await mailbox.setBroadcast(monitor, version: "1") {}
        let one = try await mailbox.broadcasts()
        #expect(one == [monitor: "1"])
    }
}

import DeviceLink
import TidingsConformance
import TidingsModels
import Testing
import WebSocketFraming

@Suite("WebSocket framing (RFC 6455 section 5)")
struct WebSocketTests {
    private let mask: [UInt8] = [1, 2, 3, 4]

    private func decode(
        _ bytes: [UInt8],
        role: WebSocketRole = .server,
        max: Int = 1000,
        stepwise: Bool = false
    ) throws(WebSocketError) -> [WebSocketEvent] {
        var decoder = WebSocketDecoder(role: role, messageByteCountMax: max)
        guard stepwise else { return try decoder.receive(bytes.span) }
        var events: [WebSocketEvent] = []
        for byte in bytes {
            let one = [byte]
            events += try decoder.receive(one.span)
        }
        return events
    }

    @Test(
        "frames of every length form, whole and byte by byte",
        arguments: [0, 1, 125, 126, 65535, 65536, 70000]
    )
    func lengths(count: Int) throws {
        let text = String(repeating: "x", count: count)
        let frame = WebSocketEncoder.frame(.text, Array(text.utf8), mask: mask)
        #expect(try decode(frame, max: 100_000) == [.text(text)])
        if count < 1000 { #expect(try decode(frame, stepwise: true) == [.text(text)]) }
        #expect(
            try decode(WebSocketEncoder.frame(.text, Array(text.utf8)), role: .client, max: 100_000) == [
                .text(text)
            ]
        )
    }

    @Test("fragments join, and control frames may come between")
    func fragments() throws {
        var first = WebSocketEncoder.frame(.text, Array("He".utf8), mask: mask)
        first[0] = 0x01
        var last = WebSocketEncoder.frame(.continuation, Array("llo".utf8), mask: mask)
        last[0] = 0x80
        let ping = WebSocketEncoder.frame(.ping, [7], mask: mask)
        #expect(try decode(first + ping + last) == [.ping([7]), .text("Hello")])
    }

    @Test(
        "each rule's violation is answered with its close code, whole and byte by byte; its twin is taken",
        arguments: WebSocketViolation.table.indices
    )
    func violations(index: Int) throws {
        let violation = WebSocketViolation.table[index]
        for stepwise in [false, true] {
            let error = #expect(throws: WebSocketError.self) {
                try decode(violation.bytes, max: 65536, stepwise: stepwise)
            }
            #expect(error?.closeCode == violation.closeCode, "\(violation.rule)")
            #expect(try !decode(violation.twin, max: 65536, stepwise: stepwise).isEmpty, "\(violation.rule)")
        }
    }

    @Test("a server's frame that is masked is refused by a client (5.1)")
    func maskedByServer() {
        let error = #expect(throws: WebSocketError.self) {
            try decode(WebSocketEncoder.frame(.text, [0x41], mask: mask), role: .client)
        }
        #expect(error?.closeCode == 1002)
    }

    @Test("a close frame ends the input")
    func close() throws {
        let frames =
            WebSocketEncoder.close(1000, "bye", mask: mask)
            + WebSocketEncoder.frame(.text, [0x41], mask: mask)
        #expect(try decode(frames) == [.close(code: 1000, reason: "bye")])
        #expect(
            try decode(WebSocketEncoder.frame(.close, [], mask: mask)) == [.close(code: 1005, reason: "")]
        )
    }
}

@Suite("The device link")
struct DeviceLinkTests {
    private let channel = "bb48d986-cbe9-4eac-80b0-48fde4b66876"

    @Test("frames come back as they were")
    func roundTrip() throws {
        let id = try #require(BroadcastID("remote-settings/monitor_changes"))
        let versions = [id: "\"17\"", try #require(BroadcastID("b")): ""]
        let frames: [DeviceFrame] = [
            .hello(uaid: nil), .hello(uaid: "x", broadcasts: versions), .broadcastSubscribe([:]),
            .broadcastSubscribe(versions), .register(channelID: channel, key: nil, platform: .wns),
            .register(channelID: channel, key: "k", platform: nil),
            .unregister(channelID: channel, code: 202),
            .ack([.init(channelID: channel, version: "v", code: 102)]), .nack(version: "v", code: 301), .ping,
        ]
        for frame in frames { #expect(try DeviceFrame(parsing: frame.text) == frame) }
        let answers: [GatewayFrame] = [
            .hello(uaid: "u"), .hello(uaid: "u", broadcasts: .init(versions: versions)),
            .broadcast(.init(unknown: [id])), .broadcast(.init(versions: [id: "1"], unknown: [id])),
            .register(channelID: channel, status: 400, endpoint: "why"),
            .unregister(channelID: channel, status: 200), .pong,
            .notification(
                .init(
                    channelID: channel,
                    version: "v",
                    platform: .apns,
                    headers: ["apns-push-type": "alert"],
                    data: [1, 2, 255]
                )
            ),
        ]
        for frame in answers { #expect(try GatewayFrame(parsing: frame.text) == frame) }
    }

    @Test(
        "bad frames close the connection",
        arguments: [
            "x", "[]", "{\"messageType\":\"dance\"}",
            "{\"messageType\":\"register\",\"channelID\":\"BB48D986-CBE9-4EAC-80B0-48FDE4B66876\"}",
            "{\"messageType\":\"register\"}",
            "{\"messageType\":\"register\",\"channelID\":\"bb48d986-cbe9-4eac-80b0-48fde4b66876\",\"platform\":\"palm\"}",
            "{\"messageType\":\"ack\",\"updates\":[{}]}",
            "{\"messageType\":\"broadcast_subscribe\"}",
            "{\"messageType\":\"hello\",\"broadcasts\":\"x\"}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\"a\":null}}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\"errors\":\"1\"}}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\"a\":\"\u{e9}\"}}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\"\(String(repeating: "a", count: 129))\":\"1\"}}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\"a\":\"\(String(repeating: "1", count: 129))\"}}",
            "{\"messageType\":\"hello\",\"broadcasts\":{\((0...100).map { "\"\($0)\":\"1\"" }.joined(separator: ","))}}",
        ]
    )
    func badFrames(text: String) {
        let error = #expect(throws: LinkViolation.self) { try DeviceFrame(parsing: text) }
        #expect(error?.closeCode == 1011)
    }

    @Test("hello comes first and once; pings not too fast")
    func rules() throws {
        var rules = GatewayLinkRules()
        #expect(throws: LinkViolation.self) { try rules.received(.ping, now: .zero) }
        #expect(
            try rules.received(.hello(uaid: "1DC98DA3-691D-466C-BEB4-9CB949882C25"), now: .zero)
                == .identify(uaid: "1dc98da3691d466cbeb49cb949882c25", broadcasts: [:])
        )
        #expect(throws: LinkViolation.self) { try rules.received(.hello(uaid: nil), now: .zero) }
        #expect(try rules.received(.ping, now: .seconds(1)) == .pong)
        #expect(throws: LinkViolation.self) { try rules.received(.ping, now: .seconds(30)) }
        #expect(try rules.received(.ping, now: .seconds(90)) == .pong)
        var other = GatewayLinkRules()
        #expect(
            try other.received(.hello(uaid: "not a uuid"), now: .zero)
                == .identify(uaid: nil, broadcasts: [:])
        )
    }

    @Test("ids that a gateway does not have stand beside the versions, as autopush-rs has them")
    func unknownBroadcasts() throws {
        let news = BroadcastNews(
            versions: [try #require(BroadcastID("kinto:123")): "ver1"],
            unknown: [try #require(BroadcastID("kinto:456"))]
        )
        #expect(
            GatewayFrame.broadcast(news).text
                == #"{"messageType":"broadcast","broadcasts":{"kinto:123":"ver1","errors":{"kinto:456":"Broadcast not found"}}}"#
        )
    }

    @Test(
        "a quiet device is pinged after 300 s and given up 4 s later; any sign of life, or a broadcast, puts it off"
    )
    func keepalive() {
        let times = GatewayLinkTimes()
        var rules = KeepaliveRules(now: .seconds(10))
        #expect(rules.due(now: .seconds(11), times) == .wait(.seconds(299)))
        #expect(rules.due(now: .seconds(310), times) == .ping(.seconds(4)))
        var dead = rules
        // A broadcast that goes out meanwhile is no pong.
        dead.sentBroadcast(now: .seconds(312))
        #expect(dead.due(now: .seconds(314), times) == .giveUp)
        rules.received(now: .seconds(311))
        #expect(rules.due(now: .seconds(314), times) == .wait(.seconds(297)))
        // It goes out in place of the ping.
        rules.sentBroadcast(now: .seconds(600))
        #expect(rules.due(now: .seconds(611), times) == .wait(.seconds(289)))
        #expect(rules.due(now: .seconds(900), times) == .ping(.seconds(4)))
    }
}

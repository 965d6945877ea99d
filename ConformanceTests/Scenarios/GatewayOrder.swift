import DeviceLink
import GatewayConnection
import HTTPMessages
import HubClient
import ProcessLifecycle
import TLSTransport
import Testing
import TidingsConformance
import TidingsModels

/// What the gateway promises a device that reads slowly, and what its FCM door refuses.
@Suite("Gateway")
struct GatewayOrder {
    @Test("a push that is not stored comes behind the mail that waits, never before it")
    func unstoredBehindMail() async throws {
        try await World.run { world in
            // A device of its own that acknowledges when the test says so.
            let connection = GatewayConnection(
                url: try #require(HTTPURL(try world.gatewayURL)),
                tls: try TLSContext.client(
                    trusting: try Files.read(try world.authorityFile),
                    protocols: ["http/1.1"]
                ),
                uaid: nil,
                jitter: { 0 }
            )
            connection.start()
            defer { connection.stop() }
            var events = connection.events.makeAsyncIterator()
            let channelID = "00000000-0000-4000-8000-000000000001"
            connection.register(channelID: channelID, platform: .apns)
            var handle = ""
            while handle.isEmpty, let event = await events.next() {
                if case .registered(_, let given) = event { handle = given }
            }
            let hub = try world.hub()
            try await world.registerNative(handle, .apns, tag: "slow")
            func push(_ index: Int, _ headers: [RegistrationTemplate.Header] = []) async throws {
                let outcome = try await hub.testSend(
                    .native(.apns, "{\"aps\":{\"alert\":\"\(index)\"}}", headers: headers),
                    tags: "slow"
                )
                #expect(outcome.success == 1)
            }
            // One more than the gateway sends without an acknowledgement, then one that it may not store.
            for index in 1...101 { try await push(index) }
            try await push(102, [.init("apns-expiration", "0")])

            var texts: [String] = []
            var versions: [DeviceFrame.Ack] = []
            while texts.count < 102, let event = await events.next() {
                guard case .notification(let notification) = event else { continue }
                texts.append(String(decoding: notification.data, as: UTF8.self))
                versions.append(.init(channelID: channelID, version: notification.version, code: 100))
                if texts.count == 100 { connection.acknowledge(versions) }
            }
            #expect(texts == (1...102).map { "{\"aps\":{\"alert\":\"\($0)\"}}" })
        }
    }

    @Test("FCM: an unknown field is refused wherever it is, known ones are taken in both spellings")
    func fields() async throws {
        try await World.run { world in
            let device = try await world.device("google", .fcmV1)
            let hub = try world.hub()
            try await world.registerNative(device, .fcmV1, tag: "g")
            func outcome(_ message: String) async throws -> String {
                try await hub.testSend(.native(.fcmV1, "{\"message\":\(message)}"), tags: "g").results.first?
                    .outcome ?? "no result"
            }
            for (message, name) in [
                (#"{"android":{"colour":"x"}}"#, "colour"),
                (#"{"android":{"notification":{"channelld":"x"}}}"#, "channelld"),
                (#"{"android":{"notification":{"light_settings":{"color":{"pink":1}}}}}"#, "pink"),
                (#"{"notification":{"text":"x"}}"#, "text"), (#"{"webpush":{"fcm_options":{"x":1}}}"#, "x"),
                (#"{"apns":{"fcmOptions":{"x":1}}}"#, "x"),
            ] {
                let text = try await outcome(message)
                #expect(text.contains("Cannot find field: \(name)"), "\(message): \(text)")
            }
            let known =
                #"{"data":{"message":"ok"},"android":{"collapseKey":"k","ttl":"60s","notification":{"channel_id":"c","lightSettings":{"lightOnDuration":"1s"}},"directBootOk":true},"apns":{"payload":{"aps":{"anything":1}}},"webpush":{"headers":{"TTL":"1"}},"fcmOptions":{"analyticsLabel":"a"}}"#
            #expect(try await outcome(known).contains("successfully"))
            #expect(try await device.nextText() == "ok")
        }
    }
}

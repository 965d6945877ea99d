import HTTPMessages
import HubClient
import JSONBytes
import PushCredentials
import Testing
import TidingsConformance
import TidingsModels

/// Web Push from the hub to a device: RFC 8030, 8291 and 8292, no key of which leaves its owner.
@Suite("Web Push")
struct WebPushDelivery {
    private func message(_ text: String, _ headers: [RegistrationTemplate.Header] = []) -> HubNotification {
        .native(.browser, "{\"message\":\"\(text)\"}", headers: headers)
    }

    @Test(
        "native and template sends by tag, an installation, a secure push, and what waited while the device was away"
    )
    func delivery() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("browser", .browser)
            let handle = try await device.handle()
            try await world.registerNative(device, .browser, tag: "native")
            try await TemplateTargets.register(handle, .browser, tags: ["template"], at: hub)
            try await hub.put(
                Installation(
                    id: "browser-1",
                    handle: try PlatformHandle(shown: handle, platform: .browser),
                    tags: [try HubTag("installed")]
                )
            )
            for (tag, send) in [
                ("native", message("tag native")),
                ("template", .template(#"{"messageParam":"tag template"}"#)),
                ("installed", message("tag installed")),
            ] {
                let id = try #require(try await hub.send(send, tags: tag))
                #expect(try await device.nextText() == "tag \(tag)")
                #expect(try await world.outcome(id).outcomes == [.browser: [.success: 1]])
            }

            try await device.login("alice")
            _ = try await world.app("alice").notify(platform: "browser", user: "alice", text: "for alice")
            #expect(try await device.nextText() == "From alice: for alice")
            _ = try await world.app("alice").sendSecure("the code is 4711", to: "alice")
            #expect(try await device.nextText() == "the code is 4711")
            // Neither the secret nor any text of a message passed through the gateway in the clear.
            #expect(world.logBytes.firstRange(of: Array("4711".utf8)) == nil)

            await device.stop()
            for index in 1...3 { _ = try await hub.send(message("waited \(index)"), tags: "native") }
            // The newer of two with one topic is the one that waits.
            for text in ["old", "new"] {
                let id = try await hub.send(message(text, [.init("Topic", "score")]), tags: "native")
                _ = try await world.outcome(try #require(id))
            }
            // TTL 0 is for devices that are there.
            let now = try await hub.send(message("now or never", [.init("TTL", "0")]), tags: "native")
            #expect(try await world.outcome(try #require(now)).outcomes == [.browser: [.success: 1]])
            try await world.start(device)
            var texts: Set<String> = []
            for _ in 1...4 { texts.insert(try await device.nextText()) }
            #expect(texts == ["waited 1", "waited 2", "waited 3", "new"])
        }
    }

    @Test("a subscription that ended: 410, and the hub forgets its registrations")
    func ended() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("browser", .browser)
            let registration = try await world.registerNative(device, .browser, tag: "me")
            try await device.renewHandle()
            let id = try #require(try await hub.send(message("gone"), tags: "me"))
            #expect(try await world.outcome(id).outcomes == [.browser: [.expiredChannel: 1]])
            #expect(try await hub.registration(registration.id) == nil)
        }
    }

    /// A sender of its own, as a library would be.
    private struct Sender {
        let pair: P256KeyPair
        let key: SigningKey
        let world: World

        init(_ world: World) throws {
            pair = try .generate()
            key = try .p256(point: pair.point, scalar: pair.scalar)
            self.world = world
        }

        func authorization(audience: String? = nil, life: Int64 = 3600) throws -> String {
            try VAPID.authorization(
                audience: audience ?? world.gatewayURL,
                subject: "mailto:a@example.org",
                expires: world.clock.now + .seconds(life),
                key: key,
                point: pair.point
            )
        }

        func post(
            _ endpoint: String,
            _ fields: HTTPFields = [:],
            body: [UInt8]? = nil,
            encrypted: Bool = true
        ) async throws -> HTTPAnswer {
            var all: HTTPFields = ["TTL": "60"]
            if body != nil, encrypted { all["Content-Encoding"] = "aes128gcm" }
            for line in fields.lines { all[line.name] = line.value.isEmpty ? nil : line.value }
            return try await world.request("POST", endpoint, fields: all, body: body)
        }
    }

    @Test("what the door refuses, each with Mozilla's error number")
    func refusals() async throws {
        try await World.run { world in
            let sender = try Sender(world)
            let stranger = try Sender(world)
            let open = try await world.device("open", .browser)
            var options = World.DeviceOptions()
            options.vapidKey = Base64.encodeURL(sender.pair.point)
            let restricted = try await world.device("restricted", .browser, options)
            let anyone = try PlatformHandle(shown: try await open.handle(), platform: .browser).text
            let one = try PlatformHandle(shown: try await restricted.handle(), platform: .browser).text
            let good = try sender.authorization()
            let body = [UInt8](repeating: 7, count: 200)
            let salt = Base64.encodeURL(Digests.random(16))
            let rows: [(String, String, HTTPFields, [UInt8]?, Int, Int?)] = [
                ("no TTL", anyone, ["TTL": ""], body, 400, 111),
                ("TTL of letters", anyone, ["TTL": "1m"], body, 400, 111),
                ("TTL below 0", anyone, ["TTL": "-1"], body, 400, 112),
                ("topic of 33", anyone, ["Topic": String(repeating: "a", count: 33)], body, 400, 113),
                ("topic of 32", anyone, ["Topic": String(repeating: "a", count: 32)], body, 201, nil),
                ("topic with a dot", anyone, ["Topic": "a.b"], body, 400, 113),
                ("urgency", anyone, ["Urgency": "soon"], body, 400, 114),
                ("no encoding", anyone, ["Content-Encoding": ""], nil, 201, nil),
                ("unknown encoding", anyone, ["Content-Encoding": "aesgcm128"], body, 400, 110),
                ("aes128gcm with a salt", anyone, ["Encryption": "salt=\(salt)"], body, 400, 110),
                ("aes128gcm with p256ecdsa", anyone, ["Crypto-Key": "p256ecdsa=BA"], body, 201, nil),
                (
                    "aesgcm without a salt", anyone, ["Content-Encoding": "aesgcm", "Crypto-Key": "dh=BA"],
                    body, 400, 110
                ),
                (
                    "aesgcm", anyone,
                    [
                        "Content-Encoding": "aesgcm", "Crypto-Key": "dh=BA",
                        "Encryption": "salt=\(salt);rs=4096",
                    ], body,
                    201, nil
                ),
                ("4,096 bytes", anyone, [:], [UInt8](repeating: 1, count: 4096), 201, nil),
                ("4,097 bytes", anyone, [:], [UInt8](repeating: 1, count: 4097), 413, 104),
                ("a TTL of a year", anyone, ["TTL": "31536000"], body, 201, nil),
                (
                    "no such token",
                    try world.gatewayURL + "/wpush/v1/" + Base64.encodeURL(Digests.random(24)), [:], body,
                    404, 102
                ),
                ("no token", try world.gatewayURL + "/wpush/v1/x", [:], body, 404, 102),
                ("restricted, no key", one, [:], body, 401, 109),
                ("restricted, its key", one, ["Authorization": good], body, 201, nil),
                (
                    "restricted, another key", one, ["Authorization": try stranger.authorization()], body,
                    403, 109
                ),
                (
                    "another audience", one,
                    ["Authorization": try sender.authorization(audience: "https://push.example.org")], body,
                    401, 109
                ),
                ("expired", one, ["Authorization": try sender.authorization(life: -1)], body, 401, 109),
                (
                    "for two days", one, ["Authorization": try sender.authorization(life: 172_800)], body,
                    401, 109
                ),
                (
                    "open, a forged token", anyone, ["Authorization": good.replacing(", k=B", with: ", k=A")],
                    body, 401, 109
                ),
            ]
            for (name, endpoint, fields, body, status, number) in rows {
                let answer = try await sender.post(endpoint, fields, body: body)
                #expect(answer.status.code == status, "\(name): \(answer.text)")
                if status == 201 {
                    #expect(
                        answer.fields["Location"]?.hasPrefix(try world.gatewayURL + "/m/") == true,
                        "\(name)"
                    )
                    #expect(answer.fields["TTL"] == (name == "a TTL of a year" ? "2592000" : "60"), "\(name)")
                } else {
                    let json = try JSONValue(parsing: answer.body)
                    #expect(json["errno"]?.integerValue == number, "\(name): \(answer.text)")
                    #expect(json["code"]?.integerValue == status && json["message"]?.stringValue != nil)
                }
            }
            // A token that was good is remembered: not for another key's subscription, and not beyond its end.
            let other = try stranger.authorization()
            for (token, endpoint, status) in [(other, anyone, 201), (other, one, 403), (good, one, 201)] {
                let answer = try await sender.post(endpoint, ["Authorization": token], body: body)
                #expect(answer.status.code == status)
            }
            world.clock.advance(by: .seconds(3601))
            #expect(try await sender.post(one, ["Authorization": good], body: body).status.code == 401)
            let discovery = try await world.request("GET", anyone)
            #expect(discovery.text == #"{"unifiedpush":{"version":1}}"#)
            #expect(try await world.request("PUT", anyone, body: []).status.code == 405)
        }
    }

    @Test("a message is taken back before its device has come, and only once; a repeat is delivered once")
    func cancel() async throws {
        try await World.run { world in
            let sender = try Sender(world)
            let device = try await world.device("browser", .browser)
            let handle = try PlatformHandle(shown: try await device.handle(), platform: .browser)
            let keys = try #require(handle.keys)
            let point = try #require(Base64.decode(keys.p256dh))
            let auth = try #require(Base64.decode(keys.auth))
            let receiver = try #require(WebPushMessage.Receiver(point: point, auth: auth))
            func encrypted(_ text: String) throws -> [UInt8] {
                try WebPushMessage.encrypt(
                    Array(text.utf8),
                    to: receiver,
                    sender: .generate(),
                    salt: Digests.random(16)
                )
            }
            await device.stop()
            let answer = try await sender.post(handle.text, body: try encrypted("taken back"))
            let location = try #require(answer.fields["Location"])
            #expect(try await world.request("DELETE", location).status.code == 204)
            #expect(try await world.request("DELETE", location).status.code == 404)
            #expect(try await world.request("GET", location).status.code == 405)
            // Encrypted anew, the same delivery all the same.
            for _ in 1...2 {
                let id = "11111111-2222-3333-4444-555555555555"
                let answer = try await sender.post(
                    handle.text,
                    ["Tidings-Delivery-Id": id],
                    body: try encrypted("once")
                )
                #expect(answer.status.code == 201)
            }
            #expect(try await sender.post(handle.text, body: [1, 2, 3]).status.code == 201)
            _ = try await sender.post(handle.text, body: try encrypted("last"))
            try await world.start(device)
            #expect(try await device.nextText() == "once")
            // What nobody can read is told, acknowledged and forgotten.
            _ = try await device.nextEvent("unreadable")
            #expect(try await device.nextText() == "last")
            #expect(try world.server.counters["gateway_messages_repeated_total"] == 1)
        }
    }
}

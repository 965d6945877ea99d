import HTTPMessages
import HubClient
import JSONBytes
import PushCredentials
import PushGateway
import ProcessLifecycle
import Testing
import TidingsConformance
import TidingsModels

/// Amazon's devices, from the hub through ADM's front door to a device.
@Suite("ADM delivery")
struct ADMDelivery {
    @Test("native, template and installation; what waited; a message of a key replaced; a handle that ended")
    func delivery() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("tablet", .adm)
            let handle = try await device.handle()
            #expect(handle.hasPrefix("amzn1.adm-registration."))
            try await world.registerNative(device, .adm, tag: "native")
            try await TemplateTargets.register(handle, .adm, tags: ["template"], at: hub)
            try await hub.put(
                Installation(
                    id: "tablet-1",
                    handle: try PlatformHandle(handle, platform: .adm),
                    tags: [try HubTag("installed")]
                )
            )
            func message(_ text: String, _ more: String = "") -> HubNotification {
                .native(.adm, "{\"data\":{\"message\":\"\(text)\"}\(more)}")
            }
            for (tag, send) in [
                ("native", message("tag native")),
                ("template", .template(#"{"messageParam":"tag template"}"#)),
                ("installed", message("tag installed")),
            ] {
                let id = try #require(try await hub.send(send, tags: tag))
                #expect(try await device.nextText() == "tag \(tag)")
                #expect(try await world.outcome(id).outcomes == [.adm: [.success: 1]])
            }
            // News from the device's own subscription, and a registration by the app back end.
            try await device.subscribe(["World"])
            _ = try await hub.send(.template(#"{"messageParam":"news"}"#), tags: "World")
            #expect(try await device.nextText() == "news")
            try await device.login("alice")
            #expect(try await hub.registrations(tag: try HubTag("username:alice")).count == 1)

            await device.stop()
            for text in ["old", "new"] {
                let send = message(text, #","consolidationKey":"score""#)
                let id = try #require(try await hub.send(send, tags: "native"))
                #expect(try await world.outcome(id).outcomes == [.adm: [.success: 1]])
            }
            try await world.start(device)
            #expect(try await device.nextText() == "new")

            try await device.renewHandle()
            let id = try #require(try await hub.send(message("gone"), tags: "native"))
            #expect(try await world.outcome(id).outcomes == [.adm: [.expiredChannel: 1]])
            #expect(try await hub.registrations(tag: try HubTag("native")).isEmpty)
        }
    }

    @Test("a message that Amazon would refuse costs no registration")
    func refusedMessage() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .adm)
            try await world.registerNative(device, .adm, tag: "me")
            let id = try #require(
                try await world.hub().send(.native(.adm, #"{"data":{"number":7}}"#), tags: "me")
            )
            #expect(try await world.outcome(id).outcomes == [.adm: [.invalidNotificationFormat: 1]])
            #expect(try await world.hub().registrations(tag: try HubTag("me")).count == 1)
        }
    }

    /// The gateway's own, as a provider reads them.
    private func credentials(_ world: World) throws -> GatewayCredentials.ADM {
        let bytes = try #require(try Files.read(world.serverState + "/keys/gateway.json"))
        return try #require(try GatewayCredentials(try JSONValue(parsing: bytes))).adm
    }

    private func form(_ adm: GatewayCredentials.ADM) -> [String: String] {
        [
            "grant_type": "client_credentials", "scope": "messaging:push", "client_id": adm.clientID,
            "client_secret": adm.clientSecret,
        ]
    }

    private func token(
        _ world: World,
        _ form: [String: String],
        type: String = "application/x-www-form-urlencoded"
    ) async throws -> HTTPAnswer {
        let text = form.map { "\($0.key)=\(PercentEncoding.encode($0.value))" }.joined(separator: "&")
        return try await world.request(
            "POST",
            try world.gatewayURL + "/auth/O2/token",
            fields: ["Content-Type": type],
            body: Array(text.utf8)
        )
    }

    @Test("the token: what is refused, in Amazon's words, and a well-formed request")
    func tokens() async throws {
        try await World.run { world in
            let form = form(try credentials(world))
            for (name, value, status, error) in [
                ("grant_type", "password", 400, "invalid_request"),
                ("grant_type", nil, 400, "invalid_request"),
                ("client_id", "someone", 401, "invalid_client"),
                ("client_secret", "x", 401, "invalid_client"),
                ("client_secret", nil, 400, "invalid_request"), ("scope", "profile", 400, "invalid_scope"),
                ("scope", nil, 400, "invalid_scope"),
            ] as [(String, String?, Int, String)] {
                var wrong = form
                wrong[name] = value
                let answer = try await token(world, wrong)
                #expect(answer.status.code == status, "\(name) \(value ?? "")")
                #expect(try JSONValue(parsing: answer.body)["error"]?.stringValue == error, "\(name)")
            }
            #expect(try await token(world, form, type: "application/json").status.code == 400)
            let method = try await world.request("GET", try world.gatewayURL + "/auth/O2/token")
            #expect(method.status.code == 405 && method.fields["Allow"] == "POST")
            let good = try await token(world, form)
            let json = try JSONValue(parsing: good.body)
            #expect(good.status.code == 200 && good.fields["X-Amzn-RequestId"] != nil)
            #expect(json["expires_in"] == 3600 && json["token_type"] == "Bearer")
            #expect(json["scope"] == "messaging:push" && json["access_token"]?.stringValue != nil)
        }
    }

    @Test("the message: each of Amazon's refusals beside a twin that is taken")
    func refusals() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .adm)
            let id = try await device.handle()
            let answer = try await token(world, form(try credentials(world)))
            let access = try #require(try JSONValue(parsing: answer.body)["access_token"]?.stringValue)
            let good: HTTPFields = [
                "Authorization": "Bearer " + access, "Content-Type": "application/json",
                "Accept": "application/json",
                "X-Amzn-Type-Version": "com.amazon.device.messaging.ADMMessage@1.0",
                "X-Amzn-Accept-Type": "com.amazon.device.messaging.ADMSendResult@1.0",
            ]
            func send(
                _ id: String,
                _ fields: HTTPFields,
                _ body: String,
                _ method: String = "POST"
            ) async throws
                -> HTTPAnswer
            {
                let url = try world.gatewayURL + "/messaging/registrations/\(id)/messages"
                return try await world.request(method, url, fields: fields, body: Array(body.utf8))
            }
            let data = #"{"data":{"b":"2","a":"1"}"#
            let md5 = Base64.encode(Digests.md5(Array("a:1,b:2".utf8)))
            let full = String(repeating: "x", count: 6143)
            for (wrong, right, status, reason) in [
                ("no json", data + "}", 400, "InvalidData"), ("{}", #"{"data":{}}"#, 400, "InvalidData"),
                (#"{"data":{"a":1}}"#, #"{"data":{"a":"1"}}"#, 400, "InvalidData"),
                (data + #","priority":"urgent"}"#, data + #","priority":"high"}"#, 400, "InvalidData"),
                (
                    data + ",\"consolidationKey\":\"\(String(repeating: "k", count: 65))\"}",
                    data + ",\"consolidationKey\":\"\(String(repeating: "k", count: 64))\"}", 400,
                    "InvalidConsolidationKey"
                ),
                (data + #","expiresAfter":59}"#, data + #","expiresAfter":60}"#, 400, "InvalidExpiration"),
                (
                    data + #","expiresAfter":2678401}"#, data + #","expiresAfter":2678400}"#, 400,
                    "InvalidExpiration"
                ),
                (data + #","expiresAfter":"60"}"#, data + "}", 400, "InvalidExpiration"),
                (data + #","md5":"AAAA"}"#, data + ",\"md5\":\"\(md5)\"}", 400, "InvalidChecksum"),
                (
                    "{\"data\":{\"aa\":\"\(full)\"}}", "{\"data\":{\"a\":\"\(full)\"}}", 413,
                    "MessageTooLarge"
                ),
            ] {
                let refused = try await send(id, good, wrong)
                #expect(refused.status.code == status, "\(wrong.prefix(60))")
                #expect(try JSONValue(parsing: refused.body)["reason"]?.stringValue == reason)
                let taken = try await send(id, good, right)
                #expect(taken.status.code == 200, "\(right.prefix(60)): \(taken.text)")
                #expect(try JSONValue(parsing: taken.body)["registrationID"]?.stringValue == id)
            }
            for (name, value, status, reason) in [
                ("Authorization", nil, 401, "AccessTokenExpired"),
                ("Authorization", "Bearer x.y", 401, "AccessTokenExpired"),
                ("X-Amzn-Type-Version", "com.amazon.device.messaging.ADMMessage@2.0", 400, "InvalidType"),
                ("X-Amzn-Accept-Type", nil, 400, "InvalidType"),
                ("Content-Type", "text/plain", 400, "InvalidType"),
            ] as [(String, String?, Int, String)] {
                var fields = good
                fields[name] = value
                let refused = try await send(id, fields, data + "}")
                #expect(refused.status.code == status, "\(name)")
                #expect(try JSONValue(parsing: refused.body)["reason"]?.stringValue == reason, "\(name)")
            }
            let unknown = try await send("nobody", good, data + "}")
            #expect(unknown.status.code == 400 && unknown.text.contains("InvalidRegistrationId"))
            let method = try await send(id, good, data + "}", "PUT")
            #expect(method.status.code == 405 && method.fields["Allow"] == "POST")
            try await device.renewHandle()
            let gone = try await send(id, good, data + "}")
            #expect(gone.status.code == 400 && gone.text.contains("Unregistered"))
            // An hour later the token is over.
            world.clock.advance(by: .seconds(3601))
            #expect(try await send(id, good, data + "}").status.code == 401)
        }
    }
}

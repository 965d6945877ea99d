import HTTPMessages
import HTTPServing
import HubClient
import Testing
import TidingsConformance
import TidingsModels

/// A hub whose description names credentials, from its PUT to what the push service hears and to what becomes of a registration.
@Suite("Senders of a hub's description")
struct DescribedSenders {
    private static func adm(_ origin: String) -> [String: String] {
        [
            "ClientId": "c", "ClientSecret": "s", "AuthTokenUrl": origin + "/auth/O2/token",
            "SendUrlTemplate": origin + "/messaging/registrations/{0}/messages",
        ]
    }

    private func outcomes(
        _ hub: HubClient,
        _ notification: HubNotification
    ) async throws -> [Platform: [Outcome: Int]] {
        let id = try #require(try await hub.send(notification, tags: "me"))
        return try await hub.finalDetails(id, every: .milliseconds(5)).outcomes
    }

    @Test("Amazon, Baidu and Mi Push: native and template sends, a dead handle, trouble that passes")
    func sends() async throws {
        try await ScriptedServer.run { server, url in
            var options = World.Options()
            options.configure = { $0.credentialOrigins = [url.origin] }
            try await World.run(options) { world in
                let hub = try await world.describedHub([
                    .adm: Self.adm(url.origin),
                    .baidu: ["BaiduApiKey": "a", "BaiduSecretKey": "s", "BaiduEndPoint": url.origin],
                    .xiaomi: ["AppSecret": "x", "Endpoint": url.origin],
                ])
                let cases: [(Platform, String, String, HTTPResponse, HTTPResponse)] = [
                    (
                        .adm, "amzn1.x", #"{"data":{"message":"$(m)"}}"#, HTTPResponse(200),
                        HTTPResponse(400, text: #"{"reason":"Unregistered"}"#)
                    ),
                    (
                        .baidu, "u1-c1", #"{"title":"News","description":"$(m)"}"#,
                        HTTPResponse(200, text: #"{"request_id":1}"#),
                        HTTPResponse(400, text: #"{"error_code":30607,"error_msg":"x"}"#)
                    ),
                    (
                        .xiaomi, "reg1", #"{"message":"$(m)"}"#, HTTPResponse(200, text: #"{"code":0}"#),
                        HTTPResponse(200, text: #"{"result":"error","code":20301}"#)
                    ),
                ]
                for (platform, text, body, taken, dead) in cases {
                    let handle = try PlatformHandle(text, platform: platform)
                    let token = HTTPResponse(200, text: #"{"access_token":"t","expires_in":3600}"#)
                    for template in [nil, RegistrationTemplate(body: body)] {
                        _ = try await hub.create(
                            RegistrationContent(handle: handle, tags: [try HubTag("me")], template: template)
                        )
                    }
                    server.expect((platform == .adm ? [token] : []) + [taken])
                    #expect(
                        try await outcomes(hub, .template(#"{"m":"Hi"}"#)) == [platform: [.success: 1]]
                    )
                    let rendered = body.replacing("$(m)", with: "Hi")
                    let heard = try #require(server.heard.last)
                    #expect((heard[form: "msg"] ?? heard[form: "payload"] ?? heard.text) == rendered)

                    server.expect([HTTPResponse(503, ["Retry-After": "0"]), taken])
                    let native = HubNotification.native(platform, rendered)
                    #expect(try await outcomes(hub, native) == [platform: [.success: 1]])
                    #expect(server.requests.count == 2)

                    server.expect([dead])
                    let outcome: Outcome = platform == .xiaomi ? .badChannel : .expiredChannel
                    #expect(try await outcomes(hub, native) == [platform: [outcome: 1]])
                    for registration in try await hub.registrations() {
                        // The native one is gone; the template's has not been sent to since.
                        #expect(registration.content.template != nil)
                        try await hub.delete(registration.id)
                    }
                }
            }
        }
    }

    @Test(
        "Amazon names another registration id: the registration, or the whole installation, goes on with it"
    )
    func replacedHandle() async throws {
        try await ScriptedServer.run { server, url in
            var options = World.Options()
            options.configure = { $0.credentialOrigins = [url.origin] }
            try await World.run(options) { world in
                let hub = try await world.describedHub([.adm: Self.adm(url.origin)])
                let old = try PlatformHandle("amzn1.old", platform: .adm)
                let made = try await hub.create(RegistrationContent(handle: old, tags: [try HubTag("me")]))
                let token = HTTPResponse(200, text: #"{"access_token":"t","expires_in":3600}"#)
                let moved = HTTPResponse(200, text: #"{"registrationID":"amzn1.new"}"#)
                let push = HubNotification.native(.adm, #"{"data":{"m":"Hi"}}"#)
                server.expect([token, moved, HTTPResponse(200)])
                #expect(try await outcomes(hub, push) == [.adm: [.success: 1]])
                let after = try #require(try await hub.registration(made.id))
                #expect(after.content.handle.text == "amzn1.new" && after.content.tags == made.content.tags)
                #expect(after.etag != made.etag && after.expires == made.expires)
                #expect(try await outcomes(hub, push) == [.adm: [.success: 1]])
                #expect(server.requests.last == "POST /messaging/registrations/amzn1.new/messages")
                try await hub.delete(made.id)

                try await hub.put(
                    Installation(
                        id: "i1",
                        handle: old,
                        tags: [try HubTag("me")],
                        templates: [
                            InstallationTemplate(name: "t", body: #"{"data":{"m":"$(m)"}}"#)
                        ]
                    )
                )
                server.expect([moved])
                #expect(try await outcomes(hub, .template(#"{"m":"Hi"}"#)) == [.adm: [.success: 1]])
                #expect(try await hub.installation("i1")?.handle.text == "amzn1.new")
                let rows = try await hub.registrations()
                #expect(rows.count == 2 && rows.allSatisfy { $0.content.handle.text == "amzn1.new" })
            }
        }
    }

    @Test(
        "Windows phones: an MpnsCredential without properties stays through a restart and reaches no other server"
    )
    func phones() async throws {
        try await ScriptedServer.run { server, url in
            server.expect([])
            try await World.run { world in
                var hub = try await world.describedHub([.mpns: [:]])
                await world.stopServer()
                try await world.startServer()
                hub = try world.namespaceClient("garden")
                #expect(
                    try await NamespaceClient(hub).hub("garden")?.credentials.keys.contains(.mpns) == true
                )
                _ = try await hub.create(
                    RegistrationContent(
                        handle: try PlatformHandle(url.description + "mpns/x", platform: .mpns),
                        tags: [try HubTag("me")]
                    )
                )
                let outcomes = try await outcomes(hub, .native(.mpns, "raw"))
                #expect(outcomes == [.mpns: [.badChannel: 1]])
                // The refusal is no word of the platform about the channel.
                #expect(try await hub.registrations().count == 1)
                #expect(server.requests.isEmpty)
            }
        }
    }
}

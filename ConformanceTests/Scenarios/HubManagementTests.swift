import HTTPMessages
import HubAPI
import HubClient
import ProcessLifecycle
import PushCredentials
import TidingsConformance
import TidingsModels
import Testing

/// The namespace's Atom API (protocol reference, section 9).
@Suite("The hubs of a namespace")
struct HubManagementTests {
    /// A request signed with the namespace's key, or another connection string.
    private func call(
        _ world: World,
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        fields: HTTPFields = [:],
        by connection: String? = nil
    ) async throws -> HTTPAnswer {
        var fields = fields
        let text = try connection ?? world.server.endpoints.namespaceConnectionString ?? ""
        let key = try HubConnectionString(parsing: text)
        fields["Authorization"] = SharedAccessSignature.make(
            resource: try world.hubURL + "/",
            keyName: key.keyName,
            key: key.key,
            expires: world.clock.now + .seconds(600)
        )
        return try await world.request(
            method,
            try world.hubURL + path,
            fields: fields,
            body: body.map { Array($0.utf8) }
        )
    }

    private func body(_ description: HubDescription) -> String { HubDescriptionXML.request(description) }

    @Test(
        "create 201 with the default rules, 409 when it is there, read, update, list in both forms, delete, 404 afterwards"
    )
    func lifecycle() async throws {
        try await World.run { world in
            let made = try await call(
                world,
                "PUT",
                "/garden?api-version=2017-04",
                body(HubDescription(name: "garden"))
            )
            #expect(made.status.code == 201, "\(made.text)")
            #expect(made.fields["Content-Type"] == "application/atom+xml; type=entry; charset=utf-8")
            #expect(
                made.text.contains(
                    "<RegistrationTtl>P10675199DT2H48M5.4775807S</RegistrationTtl><AuthorizationRules>"
                )
            )
            let hub = try HubDescriptionXML.read(made.body, name: "garden")
            #expect(hub.policies.map(\.name) == [AccessPolicy.listenName, AccessPolicy.fullName])
            #expect(
                hub.policies.allSatisfy { $0.primaryKey.utf8.count == 44 && $0.secondaryKey.utf8.count == 44 }
            )
            #expect(hub.policies.map(\.rights) == [.listen, .full])
            let again = try await call(world, "PUT", "/GARDEN", body(HubDescription(name: "GARDEN")))
            #expect(
                again.status.code == 409 && again.text.contains("SubCode=40900. Conflict"),
                "\(again.text)"
            )

            // The new hub works at once, with its own key.
            let key = hub.policies[1].primaryKey
            let own =
                "Endpoint=\(try world.hubURL)/;SharedAccessKeyName=\(AccessPolicy.fullName);SharedAccessKey=\(key)"
            let client = HubClient(
                try HubConnectionString(parsing: own),
                hub: "garden",
                client: try world.httpClient(),
                time: world.clock
            )
            let phone = try await world.device("phone", .apns)
            _ = try await client.create(
                RegistrationContent(handle: try PlatformHandle(try await phone.handle(), platform: .apns))
            )
            let sent = try #require(
                try await client.send(.native(.apns, #"{"aps":{"alert":"hello"}}"#), tags: "")
            )
            #expect(try await client.finalDetails(sent, every: .milliseconds(5)).count(.success) == 1)
            #expect(try await phone.nextText() == "hello")
            #expect(try await world.hub().registrations().isEmpty)

            let read = try await call(world, "GET", "/garden", by: own)
            #expect(read.status.code == 200)
            #expect(
                read.text.contains(
                    "<DailyMaxActiveDevices>1</DailyMaxActiveDevices><DailyMaxActiveRegistrations>1</DailyMaxActiveRegistrations><DailyApiCalls>"
                )
            )

            var change = HubDescription(
                name: "garden",
                registrationTTL: .seconds(2 * 86400),
                policies: hub.policies,
                userMetadata: "plums & pears"
            )
            change.policies[1].primaryKey = "another key"
            let updated = try await call(
                world,
                "PUT",
                "/garden",
                body(change),
                fields: ["If-Match": "*"],
                by: own
            )
            #expect(updated.status.code == 200, "\(updated.text)")
            #expect(!updated.text.contains("<published>") && updated.text.contains("<Status>false</Status>"))
            #expect(
                updated.text.contains("<RegistrationTtl>P2D</RegistrationTtl>")
                    && updated.text.contains("plums &amp; pears")
            )
            // The old key is out at once, the second one still holds.
            await #expect(throws: HubError.self) { try await client.registrations() }
            let second = own.replacing(key, with: hub.policies[1].secondaryKey)
            let other = HubClient(
                try HubConnectionString(parsing: second),
                hub: "garden",
                client: try world.httpClient(),
                time: world.clock
            )
            let registration = try await other.create(
                RegistrationContent(handle: try PlatformHandle("ab12", platform: .apns))
            )
            #expect(
                registration.expires == world.clock.now + .seconds(2 * 86400) || registration.expires < .never
            )

            let short = try await call(world, "GET", "/")
            #expect(short.fields["Content-Type"] == "application/atom+xml; type=feed; charset=utf-8")
            #expect(short.text.contains("<title type=\"text\">Publicly Listed Services</title>"))
            #expect(try HubDescriptionXML.readNames(short.body) == ["garden", "tidings"])
            let full = try await call(
                world,
                "GET",
                "/$Resources/NotificationHubs/?api-version=2014-09&$skip=1&$top=2147483647"
            )
            #expect(try HubDescriptionXML.readNames(full.body) == ["tidings"])
            #expect(full.text.contains("<content type=\"application/xml\"><NotificationHubDescription"))

            // A hub's own key reads and changes it, but neither deletes nor lists.
            #expect(try await call(world, "DELETE", "/garden", by: second).status.code == 401)
            #expect(try await call(world, "GET", "/", by: second).status.code == 401)
            #expect(try await world.request("GET", try world.hubURL + "/").status.code == 401)
            let gone = try await call(world, "DELETE", "/garden")
            #expect(gone.status.code == 200 && gone.body.isEmpty)
            #expect(try await call(world, "DELETE", "/garden").status.code == 404)
            #expect(try await call(world, "GET", "/garden").status.code == 404)
            #expect(
                try await call(world, "PUT", "/garden", body(change), fields: ["If-Match": "*"]).status.code
                    == 404
            )
            #expect(try await call(world, "GET", "/garden/registrations").status.code == 404)
            // Made again it is empty.
            #expect(
                try await call(world, "PUT", "/garden", body(HubDescription(name: "garden"))).status.code
                    == 201
            )
            #expect(try await call(world, "GET", "/garden").text.contains("<DailyMaxActiveRegistrations>0<"))
        }
    }

    @Test(
        "hubs survive a restart, their credentials are sealed on disk, and a hub of the configuration cannot be deleted"
    )
    func durable() async throws {
        try await World.run { world in
            var hub = HubDescription(
                name: "garden",
                credentials: [.adm: ["ClientId": "amzn1", "ClientSecret": "hush-hush-secret"]]
            )
            #expect(try await call(world, "PUT", "/garden", body(hub)).status.code == 201)
            let stored = try #require(try Files.read(world.serverState + "/keys/hubs.json"))
            #expect(
                stored.firstRange(of: "garden".utf8) != nil
                    && stored.firstRange(of: "hush-hush-secret".utf8) == nil
            )
            await world.stopServer()
            try await world.startServer()
            let read = try await call(world, "GET", "/garden")
            hub = try HubDescriptionXML.read(read.body, name: "garden")
            #expect(hub.credentials == [.adm: ["ClientId": "amzn1", "ClientSecret": "hush-hush-secret"]])
            let refused = try await call(world, "DELETE", "/tidings")
            #expect(refused.status.code == 409 && refused.text.contains("configuration"))
            #expect(!world.logBytes.contains("hush-hush-secret".utf8))
        }
    }

    @Test("a wrong description is refused with what is wrong, and a disabled hub says so")
    func refusals() async throws {
        try await World.run { world in
            func put(_ description: HubDescription, name: String = "garden") async throws -> HTTPAnswer {
                try await call(world, "PUT", "/\(PercentEncoding.encode(name))", body(description))
            }
            let bad: [(HubDescription, String)] = [
                (HubDescription(name: "garden", registrationTTL: .seconds(3600)), "P1D"),
                (HubDescription(name: "garden", policies: [.init(name: "a", rights: [.manage])]), "Manage"),
                (HubDescription(name: "garden", policies: [.init(name: "a", rights: [])]), "no right"),
                (
                    HubDescription(
                        name: "garden",
                        policies: [.init(name: "a", rights: .listen), .init(name: "a", rights: .send)]
                    ), "twice"
                ),
                (HubDescription(name: "garden", credentials: [.apns: ["KeyId": "x"]]), "AppId"),
                (
                    HubDescription(
                        name: "garden",
                        credentials: [.apns: ["ApnsCertificate": "x", "Token": "y"]]
                    ), "both"
                ),
                (
                    HubDescription(
                        name: "garden",
                        credentials: [.apns: ["KeyId": "k", "AppId": "t", "AppName": "b", "Token": "no key"]]
                    ), "private key"
                ),
                (
                    HubDescription(name: "garden", credentials: [.xiaomi: ["AppSecret": "x", "Color": "y"]]),
                    "Color"
                ),
                (
                    HubDescription(
                        name: "garden",
                        credentials: [
                            .baidu: [
                                "BaiduApiKey": "a", "BaiduSecretKey": "b",
                                "BaiduEndPoint": "http://x.example",
                            ]
                        ]
                    ), "https"
                ),
                (HubDescription(name: "garden", userMetadata: String(repeating: "x", count: 1025)), "1025"),
            ]
            for (description, reason) in bad {
                let answer = try await put(description)
                #expect(
                    answer.status.code == 400 && answer.text.contains(reason),
                    "\(reason): \(answer.text)"
                )
            }
            for name in ["-x", "a b", "ä", "a/b", "x_"] {
                #expect(try await put(HubDescription(name: name), name: name).status.code == 400, "\(name)")
            }
            for text in [
                "", "<entry/>",
                body(HubDescription(name: "garden")).replacing("P10675199DT2H48M5.4775807S", with: "P1Y"),
            ] {
                #expect(try await call(world, "PUT", "/garden", text).status.code == 400, "\(text)")
            }
            #expect(try await call(world, "GET", "/garden").status.code == 404)
            #expect(try await call(world, "POST", "/garden").status.code == 405)

            #expect(try await put(HubDescription(name: "garden", isDisabled: true)).status.code == 201)
            let disabled = try await call(world, "GET", "/garden/registrations")
            #expect(disabled.status.code == 403 && disabled.text.contains("disabled"))
            let enabled = try await call(
                world,
                "PUT",
                "/garden",
                body(HubDescription(name: "garden")),
                fields: ["If-Match": "*"]
            )
            #expect(enabled.status.code == 200)
            #expect(try await call(world, "GET", "/garden/registrations").status.code == 200)
        }
    }

    @Test("credentials of the description reach the platform, at an own gateway too")
    func credentials() async throws {
        try await World.run { world in
            let endpoints = try world.server.endpoints
            let key = String(
                decoding: try Files.read(try #require(endpoints.apnsKeyFile)) ?? [],
                as: UTF8.self
            )
            let lines = key.split(separator: "\n").filter { !$0.hasPrefix("-----") }
            let apns = [
                "Endpoint": try world.gatewayURL, "KeyId": try #require(endpoints.apnsKeyID),
                "AppId": try #require(endpoints.apnsTeamID),
                "AppName": "net.example.tidings", "Token": lines.joined(separator: "\n"),
            ]
            let made = try await call(
                world,
                "PUT",
                "/garden",
                body(HubDescription(name: "garden", credentials: [.apns: apns]))
            )
            #expect(made.status.code == 201, "\(made.text)")
            let phone = try await world.device("phone", .apns)
            let fields: HTTPFields = [
                "ServiceBusNotification-Format": "apple",
                "ServiceBusNotification-DeviceHandle": try await phone.handle(),
            ]
            let sent = try await call(
                world,
                "POST",
                "/garden/messages?direct&test",
                #"{"aps":{"alert":"keyed"}}"#,
                fields: fields
            )
            #expect(sent.text.contains("<Success>1</Success>"), "\(sent.text)")
            #expect(try await phone.nextText() == "keyed")
        }
    }
}

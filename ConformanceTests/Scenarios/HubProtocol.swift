import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import PushCredentials
import TidingsConformance
import TidingsModels
import Testing

/// The hub's protocol on the wire: statuses, headers, ETags, paging, refusals.
@Suite("The hub's protocol")
struct HubProtocol {
    private func call(
        _ world: World,
        _ method: String,
        _ path: String,
        _ body: String? = nil,
        fields: HTTPFields = [:],
        full: Bool = true
    ) async throws -> HTTPAnswer {
        try await world.signed(method, path, fields: fields, body: body, full: full)
    }

    private let apple =
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><AppleRegistrationDescription xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\"><Tags>a, b</Tags><DeviceToken>ab12</DeviceToken></AppleRegistrationDescription></content></entry>"

    @Test("registrations: statuses and headers of section 11.1, ETags of 3.5, any case of the path")
    func registrations() async throws {
        try await World.run { world in
            let ids = try await call(world, "POST", "/tidings/registrationIDs/?api-version=2020-06")
            #expect(ids.status.code == 201 && ids.body.isEmpty)
            let location = try #require(ids.fields["Location"])
            #expect(location.hasPrefix(try world.hubURL + "/tidings/registrationids/"))
            #expect(location.hasSuffix("?api-version=2020-06"))
            #expect(ids.fields["Content-Location"] == location)
            #expect(ids.fields["TrackingId"] != nil)

            let created = try await call(world, "POST", "/TIDINGS/Registrations", apple)
            #expect(created.status.code == 200)
            #expect(created.fields["ETag"] == "W/\"1\"")
            #expect(created.fields["Content-Type"] == "application/atom+xml; type=entry; charset=utf-8")
            let registration = try RegistrationXML.readEntry(created.body)
            #expect(registration.content.handle.text == "AB12")
            let path = "/tidings/registrations/\(registration.id)"
            #expect(created.text.contains("<id>\(try world.hubURL)\(path)</id>"))

            for (etag, status) in [("\"7\"", 412), ("W/\"1\"", 200), ("2", 200), ("*", 200), ("x", 400)] {
                #expect(
                    try await call(world, "PUT", path, apple, fields: ["If-Match": etag]).status.code
                        == status,
                    "\(etag)"
                )
            }
            #expect(try await call(world, "GET", path).fields["ETag"] == "W/\"4\"")
            #expect(try await call(world, "DELETE", path, fields: ["If-Match": "\"1\""]).status.code == 412)
            let deleted = try await call(world, "DELETE", path)
            #expect(deleted.status.code == 200 && deleted.body.isEmpty)
            #expect(try await call(world, "DELETE", path).status.code == 404)
            #expect(try await call(world, "GET", path).status.code == 404)
            #expect(try await call(world, "PUT", path, apple, fields: ["If-Match": "*"]).status.code == 404)
            #expect(try await call(world, "PUT", path, apple).status.code == 200)
            #expect(try await call(world, "PUT", "/tidings/registrations/x", apple).status.code == 410)
            for (tags, reason) in [("a,b c", "b c"), ("$x", "$"), ("$InstallationId:{a}", "$InstallationId")]
            {
                let answer = try await call(world, "PUT", path, apple.replacing("a, b", with: tags))
                #expect(answer.status.code == 400 && answer.text.contains(reason), "\(tags): \(answer.text)")
            }
            #expect(
                try await call(world, "PUT", "/tidings/registrations/123-234-1", apple).status.code == 200
            )
        }
    }

    @Test("lists: filters, pages that stay stable while others write, $skip, HEAD")
    func lists() async throws {
        try await World.run { world in
            let hub = try world.hub()
            for index in 0..<25 {
                let token = String(repeating: "0", count: 6) + String(index + 10)
                _ = try await hub.create(
                    RegistrationContent(
                        handle: try PlatformHandle(token, platform: .apns),
                        tags: [try HubTag(index.isMultiple(of: 2) ? "even" : "odd")]
                    )
                )
            }
            var seen: [String] = []
            var path = "/tidings/registrations?$top=10"
            for page in 0..<3 {
                let answer = try await call(world, "GET", path)
                seen += try RegistrationXML.readFeed(answer.body).map(\.id.text)
                let token = answer.fields["x-ms-continuationtoken"]
                #expect((token == nil) == (page == 2))
                if page == 0 {
                    // Writes between pages change nothing of what is to come.
                    #expect(try await hub.delete(try #require(RegistrationID(seen[0]))))
                    _ = try await hub.create(
                        RegistrationContent(handle: try PlatformHandle("ffff", platform: .apns))
                    )
                }
                path = "/tidings/registrations?%24top=10&ContinuationToken=\(token ?? "")"
            }
            #expect(Set(seen).count == seen.count && seen.count == 25)
            #expect(try await hub.registrations(tag: try HubTag("EVEN")).count == 12)
            #expect(try await hub.registrations(handle: "00000011").count == 1)
            let skipped = try await call(world, "GET", "/tidings/registrations?$skip=20&$top=100")
            #expect(try RegistrationXML.readFeed(skipped.body).count == 5)
            let filter = "/tidings/Registrations/?$filter=deviceToken+eq+'FFFF'&api-version=2013-04"
            #expect(try RegistrationXML.readFeed(try await call(world, "GET", filter).body).count == 1)
            #expect(try await call(world, "HEAD", filter).status.code == 200)
            for bad in [
                "$filter=Foo eq 'x'", "$filter=deviceToken ne 'x'", "$filter=deviceToken eq x", "$top=x",
                "continuationtoken=!!",
            ] {
                #expect(
                    try await call(world, "GET", "/tidings/registrations?" + bad.replacing(" ", with: "%20"))
                        .status.code == 400,
                    "\(bad)"
                )
            }
        }
    }

    @Test("rights: what Listen, and what a token, may not do, each with the reason and never 403")
    func rights() async throws {
        try await World.run { world in
            let cases: [(String, String, String?, Bool, String, String)] = [
                ("GET", "/tidings/registrations", nil, false, "", "Manage"),
                ("GET", "/tidings/tags/a/registrations", nil, false, "", "Manage"),
                ("POST", "/tidings/messages", "{}", false, "", "Send"),
                ("GET", "/tidings/registrations/1-2-3", nil, true, "none", "MissingToken"),
                (
                    "GET", "/tidings/registrations/1-2-3", nil, true, "SharedAccessSignature sr=x",
                    "MalformedToken"
                ),
                (
                    "GET", "/tidings/registrations/1-2-3", nil, true, try world.signature("/other"),
                    "InvalidAudience"
                ),
                (
                    "GET", "/tidings/registrations/1-2-3", nil, true,
                    try world.signature("/tidings", expires: 1000), "ExpiredToken"
                ),
                (
                    "GET", "/tidings/registrations/1-2-3", nil, true, try world.signature("/tidings") + "x",
                    "InvalidSignature"
                ),
                ("GET", "/tidings/registrations/1-2-3", nil, true, "WRAP access_token=\"x\"", "InvalidToken"),
            ]
            for (method, path, body, full, authorization, reason) in cases {
                var fields: HTTPFields = authorization.isEmpty ? [:] : ["Authorization": authorization]
                if authorization == "none" { fields = ["Authorization": ""] }
                let answer = try await call(world, method, path, body, fields: fields, full: full)
                #expect(answer.status.code == 401, "\(reason)")
                #expect(
                    answer.text.hasPrefix("<Error><Code>401</Code><Detail>")
                        && answer.text.contains(reason == "MissingToken" ? "Token" : reason),
                    "\(answer.text)"
                )
            }
            // A namespace token, and one over the whole URL, are both good.
            for resource in ["/", "/tidings/registrations?api-version=2020-06", "/tidings/registrations/"] {
                let header: HTTPFields = ["Authorization": try world.signature(resource)]
                #expect(
                    try await call(world, "GET", "/tidings/registrations", fields: header).status.code == 200
                )
            }
        }
    }

    @Test(
        "sends: 201 with an absolute Location that answers with the outcome; bad ones are 400 with the reason"
    )
    func sends() async throws {
        try await World.run { world in
            let sent = try await call(
                world,
                "POST",
                "/tidings/Messages/?api-version=2020-06",
                #"{"aps":{"alert":"x"}}"#,
                fields: ["ServiceBusNotification-Format": "Apple", "ServiceBusNotification-Tags": "a && !b"]
            )
            #expect(sent.status.code == 201 && sent.body.isEmpty)
            let location = try #require(sent.fields["Location"])
            #expect(
                location.hasPrefix(try world.hubURL + "/tidings/messages/")
                    && location.hasSuffix("?api-version=2020-06")
            )
            let id = try #require(
                NotificationID(String(location.split(separator: "/").last?.prefix { $0 != "?" } ?? ""))
            )
            let details = try await world.outcome(id)
            #expect(details.state == .noTargetFound && details.tags == "a && !b")

            let bad: [(HTTPFields, String, String)] = [
                (["ServiceBusNotification-Format": "nokiax"], "{}", "nokiax"),
                (["ServiceBusNotification-Format": "apple"], "{", "JSON"),
                (["ServiceBusNotification-Format": "apple"], "", "body"),
                (["ServiceBusNotification-Format": "windows"], "raw", "X-WNS-Type"),
                (["ServiceBusNotification-Format": "fcmv1"], #"{"data":{}}"#, "message"),
                (["ServiceBusNotification-Format": "fcmv1"], #"{"message":{"token":"x"}}"#, "token"),
                (["ServiceBusNotification-Tags": "a &&"], "{}", "character"), ([:], #"{"a":{}}"#, "'a'"),
                ([:], "[]", "flat"),
                (
                    [
                        "ServiceBusNotification-Apns-Expiry": "01/01/9000000000000000000 00:00:00",
                        "ServiceBusNotification-Format": "apple",
                    ], "{}", "Expiry"
                ),
            ]
            for (fields, body, reason) in bad {
                let answer = try await call(world, "POST", "/tidings/messages", body, fields: fields)
                #expect(
                    answer.status.code == 400 && answer.text.contains(reason),
                    "\(reason): \(answer.text)"
                )
            }
            let coded = try await call(
                world,
                "POST",
                "/tidings/messages",
                "{}",
                fields: ["Content-Encoding": "gzip"]
            )
            #expect(coded.status.code == 400 && coded.text.contains("gzip"))
            let codedText = try await world.backend(
                "POST",
                "/api/notifications?pns=apns&to_tag=bob",
                as: "alice",
                json: "\"x\"",
                fields: ["Content-Encoding": "br"]
            )
            #expect(codedText.status.code == 400 && codedText.text.contains("br"))
            let large = try await call(
                world,
                "POST",
                "/tidings/messages",
                String(repeating: " ", count: 70_000)
            )
            #expect(large.status.code == 413)
            #expect(try await call(world, "GET", "/tidings/messages/unknown").status.code == 404)
            #expect(try await call(world, "GET", "/nohub/messages/x").status.code == 404)
            #expect(try await call(world, "PATCH", "/tidings/registrations/1-2-3").status.code == 405)
        }
    }

    private func testSend(
        _ world: World,
        _ query: String,
        _ body: String,
        format: String = "template",
        tags: String = ""
    ) async throws -> HTTPAnswer {
        var fields: HTTPFields = ["ServiceBusNotification-Format": format]
        if !tags.isEmpty { fields["ServiceBusNotification-Tags"] = tags }
        return try await call(world, "POST", "/tidings/messages/?" + query, body, fields: fields)
    }

    @Test("a test send waits for the push services and tells each registration's outcome, at most ten")
    func testSends() async throws {
        try await World.run { world in
            let apple = try await world.device("apple", .apns)
            let windows = try await world.device("windows", .wns)
            try await apple.subscribe(["World"])
            try await windows.subscribe(["World"])
            let both = try await testSend(
                world,
                "api-version=2020-06&test",
                #"{"messageParam":"hello"}"#,
                tags: "World"
            )
            #expect(both.status.code == 201)
            #expect(both.fields["Content-Type"] == "application/xml; charset=utf-8")
            let outcome = try NotificationOutcomeXML.read(both.body)
            #expect(outcome.success == 2 && outcome.failure == 0)
            #expect(Set(outcome.results.map(\.applicationPlatform)) == [.apns, .wns])
            let handles = [try await apple.handle().uppercased(), try await windows.handle()]
            #expect(Set(outcome.results.map(\.pnsHandle)) == Set(handles))
            #expect(
                outcome.results.allSatisfy {
                    $0.outcome == "The Notification was successfully sent to the Push Notification System"
                }
            )
            #expect(try await apple.nextText() == "hello")
            #expect(try await windows.nextText() == "hello")
            let id = try #require(
                both.fields["Location"]?.prefix { $0 != "?" }.split(separator: "/").last
            )
            let details = try await world.hub().details(try #require(NotificationID(String(id))))
            #expect(details.state == .completed && details.count(.success) == 2)

            for query in [
                "test=", "test=true", "TEST=True&api-version=2020-06", "api-version=2020-06&test&x",
            ] {
                let none = try await testSend(world, query, "{}", tags: "nobody")
                #expect(
                    none.text.hasSuffix(
                        "<Success>0</Success><Failure>0</Failure><Results i:nil=\"true\"/></NotificationOutcome>"
                    ),
                    "\(query): \(none.text)"
                )
            }
            #expect(try await testSend(world, "test=false", "{}", tags: "nobody").body.isEmpty)
            let unclear = try await testSend(world, "test=perhaps", "{}")
            #expect(unclear.status.code == 400 && unclear.text.contains("perhaps"))
            // .NET adds it to every request of a client that tests.
            #expect(try await call(world, "GET", "/tidings/registrations?test").status.code == 200)
        }
    }

    @Test("a test send to tokens that the service does not know: the reason, and the registrations are gone")
    func testSendsToTheDead() async throws {
        try await World.run { world in
            let hub = try world.hub()
            for index in 10..<22 {
                _ = try await hub.create(
                    RegistrationContent(
                        handle: try PlatformHandle("ABCDEF\(index)", platform: .apns),
                        tags: [try HubTag("dead")]
                    )
                )
            }
            _ = try await hub.create(
                RegistrationContent(
                    handle: try PlatformHandle("u1-c1", platform: .baidu),
                    tags: [try HubTag("phone")]
                )
            )
            let dead = try NotificationOutcomeXML.read(
                try await testSend(
                    world,
                    "test",
                    #"{"aps":{"alert":"x"}}"#,
                    format: "apple",
                    tags: "dead"
                ).body
            )
            #expect(dead.success == 0 && dead.failure == 10 && dead.results.count == 10)
            let text = "The Push Notification System handle for the registration is invalid"
            #expect(dead.results.allSatisfy { $0.outcome.hasPrefix(text + ": ") }, "\(dead.results)")
            #expect(try await hub.registrations(tag: try HubTag("dead")).count == 2)

            let phone = try await hub.testSend(
                .native(.baidu, "{}"),
                tags: "phone"
            )
            #expect(phone.failure == 1)
            #expect(phone.results.first?.outcome.contains("credentials") == true)
        }
    }
}

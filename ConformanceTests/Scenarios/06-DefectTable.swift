import BackendClient
import DeviceDaemon
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// The tutorials' defects (protocol reference, table 12.8, rows 1 to 30; coverage list, T1 to T14), each through the socket.
@Suite("06 The defect table")
struct DefectTable {
    private let token = String(repeating: "AB12", count: 16)

    private func register(
        _ world: World,
        _ user: String,
        handle: String,
        tags: String = "[]",
        platform: String = "apns"
    ) async throws -> String {
        let answer = try await world.backend(
            "POST",
            "/api/register?handle=\(PercentEncoding.encode(handle))",
            as: user
        )
        #expect(answer.status.code == 200)
        let id = String(answer.text.dropFirst().dropLast())
        let put = try await world.backend(
            "PUT",
            "/api/register/\(id)",
            as: user,
            json: "{\"Platform\":\"\(platform)\",\"Handle\":\"\(handle)\",\"Tags\":\(tags)}"
        )
        #expect(put.status.code == 200)
        #expect(put.body.isEmpty)
        return id
    }

    private func tags(_ world: World, _ id: String) async throws -> Set<String>? {
        guard let id = RegistrationID(id) else { return nil }
        return try await world.hub().registration(id).map { Set($0.content.tags.map(\.text)) }
    }

    // MARK: The unchanged client

    @Test("an unchanged tutorial client works byte for byte")
    func unchangedClient() async throws {
        try await World.run { world in
            let post =
                "POST /api/register?handle=\(token) HTTP/1.1\r\nHost: localhost\r\nAuthorization: \(basic("alice"))\r\n"
                + "Connection: close\r\n\r\n"
            let first = try await RawConnection.exchange(Array(post.utf8), with: try world.backendURL)
            #expect(first.hasPrefix("HTTP/1.1 200 OK\r\n"))
            let body = try #require(first.split(separator: "\r\n\r\n").last)
            #expect(body.hasPrefix("\"") && body.hasSuffix("\""))
            let id = body.dropFirst().dropLast()
            #expect(RegistrationID(String(id)) != nil)

            let json =
                "{\n  \"Tags\" : [\n    \"y\",\n    \"x\"\n  ],\n  \"Handle\" : \"\(token)\",\n  \"Platform\" : \"apns\"\n}"
            let put =
                "PUT /api/register/\(id) HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                + "Authorization: \(basic("alice"))\r\nContent-Length: \(json.utf8.count)\r\nConnection: close\r\n\r\n\(json)"
            let second = try await RawConnection.exchange(Array(put.utf8), with: try world.backendURL)
            #expect(second.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(second.hasSuffix("\r\n\r\n"))
            #expect(try await tags(world, String(id)) == ["x", "y", "username:alice"])

            // A second start sends the PUT alone; a second POST finds the same id.
            #expect(
                try await RawConnection.exchange(Array(put.utf8), with: try world.backendURL).hasPrefix(
                    "HTTP/1.1 200"
                )
            )
            #expect(
                try await RawConnection.exchange(Array(post.utf8), with: try world.backendURL).hasSuffix(
                    "\"\(id)\""
                )
            )
        }
    }

    @Test("a POST without handle and body gives a new id each time")
    func newIDs() async throws {
        try await World.run { world in
            let first = try await world.backend("POST", "/api/register", as: "alice")
            let second = try await world.backend("POST", "/api/register", as: "alice")
            #expect(first.status.code == 200 && second.status.code == 200)
            #expect(first.text != second.text)
        }
    }

    // MARK: Rows 1 to 5

    @Test(
        "row 1: gcm, fcm and fcmv1 are Google, in any case; an unknown name is 400",
        arguments: ["gcm", "FCM", "fcmV1"]
    )
    func googleAliases(name: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone", .fcmV1)
            try await device.login("alice")
            try await world.app("bob").notify(platform: name, user: "alice", text: "Hi")
            #expect(try await device.nextText() == "From bob: Hi")
            let unknown = try await world.backend(
                "POST",
                "/api/notifications?pns=palm&to_tag=alice",
                as: "bob",
                json: "\"x\""
            )
            #expect(unknown.status.code == 400)
            #expect(unknown.text.contains("palm"))
        }
    }

    @Test(
        "rows 2 and 3: naive quoting and hostile text",
        arguments: [
            (#""say "hi" now""#, #"say "hi" now"#), (#"plain text"#, "plain text"),
            (#""with \" escape""#, #"with " escape"#),
            ("\"\"},\"x\":{\"y\":\"\"", "\"},\"x\":{\"y\":\""),
        ]
    )
    func messageBodies(body: String, text: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            let answer = try await world.backend(
                "POST",
                "/api/notifications?pns=apns&to_tag=alice",
                as: "bob",
                fields: ["Content-Type": "application/json;charset=utf-8"],
                body: Array(body.utf8)
            )
            #expect(answer.status.code == 200)
            #expect(try await device.nextText() == "From bob: " + text)
        }
    }

    @Test(
        "row 4: a registration that is gone at the hub comes back with the client's repeated PUT; only an unusable id is 410"
    )
    func goneAtTheHub() async throws {
        try await World.run { world in
            let id = try await register(world, "alice", handle: token)
            let registrationID = try #require(RegistrationID(id))
            #expect(try await world.hub().delete(registrationID))
            let put = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "alice",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(token)\"}"
            )
            #expect(put.status.code == 200)
            #expect(try await tags(world, id) == ["username:alice"])
            let unusable = try await world.backend(
                "PUT",
                "/api/register/not-an-id",
                as: "alice",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(token)\"}"
            )
            #expect(unusable.status.code == 410)
        }
    }

    @Test("row 5: the hub's answers are mapped: no hub is 503, a refused key is 502")
    func hubTrouble() async throws {
        try await World.run { world in
            let good = try world.connectionString(full: true)
            for (connection, status) in [
                ("Endpoint=http://127.0.0.1:1/;SharedAccessKeyName=x;SharedAccessKey=y", 503),
                (
                    good.prefix { $0 != ";" }
                        + ";SharedAccessKeyName=DefaultFullSharedAccessSignature;SharedAccessKey=wrong", 502
                ),
            ] {
                try await BackendAlone.run(hub: connection, authorityFile: try world.authorityFile) {
                    address in
                    let answer = try await world.request(
                        "POST",
                        address + "/api/register",
                        fields: ["Authorization": basic("alice", "a:b:c")]
                    )
                    #expect(answer.status.code == status)
                    #expect(!answer.body.isEmpty)
                }
            }
        }
    }

    // MARK: Rows 6 to 8, 23, 27: who is it

    @Test(
        "rows 6 and 7: a missing header is 401, wrong credentials are 403 in compatibility mode and 401 without",
        arguments: [true, false]
    )
    func refusals(isCompatible: Bool) async throws {
        var options = World.Options()
        options.isCompatibilityMode = isCompatible
        let chosen = options
        try await World.run(chosen) { world in
            let missing = try await world.backend("POST", "/api/register", as: nil)
            #expect(missing.status.code == 401)
            #expect(missing.fields["WWW-Authenticate"]?.hasPrefix("Basic realm=") == true)
            let wrong = try await world.request(
                "POST",
                try world.backendURL + "/api/register",
                fields: ["Authorization": basic("alice", "bob")]
            )
            #expect(wrong.status.code == (isCompatible ? 403 : 401))
            #expect(wrong.body.isEmpty == isCompatible)
            for header in [
                "Basic !!!", "Basic " + Base64.encode(Array("no colon".utf8)), "Digest x", "Basic",
            ] {
                let answer = try await world.request(
                    "POST",
                    try world.backendURL + "/api/register",
                    fields: ["Authorization": header]
                )
                #expect(answer.status.code == 401, "\(header)")
            }
        }
    }

    @Test(
        "rows 8 and 27: outside --dev users have passwords, which may hold colons and any script; user==password is refused"
    )
    func passwords() async throws {
        try await World.run { world in
            try await BackendAlone.run(
                hub: try world.connectionString(full: true),
                authorityFile: try world.authorityFile
            ) { address in
                for (user, password, status) in [
                    ("alice", "a:b:c", 200), ("alice", "a", 403), ("alice", "alice", 403),
                    ("émile", "x", 403), ("bob", "пароль", 200),
                    ("nobody", "nobody", 403),
                ] {
                    let answer = try await world.request(
                        "POST",
                        address + "/api/register",
                        fields: ["Authorization": basic(user, password)]
                    )
                    #expect(answer.status.code == status, "\(user):\(password)")
                }
            }
        }
    }

    @Test(
        "row 23: the scheme in any case and blanks inside the Base64 are taken; a line end in a header is refused"
    )
    func blanksInCredentials() async throws {
        try await World.run { world in
            let encoded = Base64.encode(Array("alice:alice".utf8))
            let split = "bAsIc " + encoded.prefix(6) + " " + encoded.dropFirst(6)
            let answer = try await world.request(
                "POST",
                try world.backendURL + "/api/register",
                fields: ["Authorization": String(split)]
            )
            #expect(answer.status.code == 200)
            let folded =
                "POST /api/register HTTP/1.1\r\nHost: a\r\nAuthorization: Basic \(encoded.prefix(6))\r\n \(encoded.dropFirst(6))\r\n\r\n"
            #expect(
                try await RawConnection.exchange(Array(folded.utf8), with: try world.backendURL).hasPrefix(
                    "HTTP/1.1 400"
                )
            )
        }
    }

    // MARK: Rows 9 to 13: whose registration

    @Test("row 9: reserved tags are refused", arguments: ["username:bob", "FROM:bob", "UserName:x"])
    func reservedTags(tag: String) async throws {
        try await World.run { world in
            let id = try await register(world, "alice", handle: token)
            let answer = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "alice",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(token)\",\"Tags\":[\"\(tag)\"]}"
            )
            #expect(answer.status.code == 400)
            #expect(answer.text.contains("reserved"))
            #expect(try await tags(world, id) == ["username:alice"])
        }
    }

    @Test("row 10: a foreign registration cannot be changed or deleted; the device itself takes it over")
    func foreignRegistrations() async throws {
        try await World.run { world in
            let id = try await register(world, "alice", handle: token)
            let other = String(repeating: "CD34", count: 16)
            let foreign = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "mallory",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(other)\"}"
            )
            #expect(foreign.status.code == 403)
            #expect(
                try await world.backend("DELETE", "/api/register/\(id)", as: "mallory").status.code == 404
            )
            #expect(try await tags(world, id) == ["username:alice"])

            // A new login on the same device: the first user's tag is gone at once, before any PUT.
            let taken = try await world.backend(
                "POST",
                "/api/register?handle=\(token.lowercased())",
                as: "bob"
            )
            #expect(taken.text == "\"\(id)\"")
            #expect(try await tags(world, id) == ["username:bob"])
            #expect(try await world.backend("DELETE", "/api/register/\(id)", as: "bob").status.code == 200)
            #expect(try await tags(world, id) == nil)
        }
    }

    @Test("row 10: further registrations of the same handle, made under other ids, are removed")
    func surplusRegistrations() async throws {
        try await World.run { world in
            let first = try await register(world, "alice", handle: token)
            let id = try await world.backend("POST", "/api/register", as: "bob").text.dropFirst().dropLast()
            let put = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "bob",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(token)\"}"
            )
            #expect(put.status.code == 200)
            #expect(try await tags(world, first) == nil)
            #expect(try await tags(world, String(id)) == ["username:bob"])
        }
    }

    @Test("row 11: missing tags, and null, are none")
    func missingTags() async throws {
        try await World.run { world in
            for tags in ["", ",\"Tags\":null", ",\"tags\":[]"] {
                let id = try await world.backend("POST", "/api/register", as: "alice").text.dropFirst()
                    .dropLast()
                let put = try await world.backend(
                    "PUT",
                    "/api/register/\(id)",
                    as: "alice",
                    json: "{\"platform\":\"apns\",\"handle\":\"\(token)\"\(tags)}"
                )
                #expect(put.status.code == 200)
            }
        }
    }

    @Test("row 12: a user name that cannot be a tag is refused with the legal characters")
    func illegalUserName() async throws {
        try await World.run { world in
            let answer = try await world.backend("POST", "/api/register", as: "alice b|c")
            #expect(answer.status.code == 400)
            #expect(answer.text.contains("tag"))
        }
    }

    @Test(
        "rows 13 and 30: a push reaches the recipient's devices, not those tagged from:<sender>, and says who sent it"
    )
    func fromTags() async throws {
        try await World.run { world in
            let alice = try await world.device("alice")
            let spy = try await world.device("spy")
            try await alice.login("alice")
            let handle = try PlatformHandle(try await spy.handle(), platform: .apns)
            _ = try await world.hub().create(
                RegistrationContent(handle: handle, tags: [try HubTag("from:bob")])
            )
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "private, From carol")
            #expect(try await alice.nextText() == "From bob: private, From carol")
            _ = try await world.hub().send(.native(.apns, #"{"aps":{"alert":"marker"}}"#), tags: "from:bob")
            #expect(try await spy.nextText() == "marker")
        }
    }

    // MARK: Rows 14 to 20: sending and items

    @Test("row 14: a platform without credentials has its own outcome and stops no other")
    func withoutCredentials() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.subscribe(["World"])
            let phone = try PlatformHandle("http://s.notify.live.net/u/1/x", platform: .mpns)
            _ = try await world.hub().create(
                RegistrationContent(
                    handle: phone,
                    tags: [try HubTag("World")],
                    template: RegistrationTemplate(
                        body:
                            "<wp:Notification xmlns:wp=\"WPNotification\"><wp:Toast><wp:Text1>$(messageParam)</wp:Text1></wp:Toast></wp:Notification>",
                        headers: [.init("X-WindowsPhone-Target", "toast"), .init("X-NotificationClass", "2")]
                    )
                )
            )
            let id = try #require(
                try await world.hub().send(.template(#"{"messageParam":"news"}"#), tags: "World")
            )
            #expect(try await device.nextText() == "news")
            #expect(
                try await world.outcome(id).outcomes == [
                    .apns: [.success: 1], .mpns: [.invalidCredentials: 1],
                ]
            )
        }
    }

    @Test(
        "rows 15 to 17: ids of concurrent pushes are distinct, positive, 31 bits, not sequential, and each its owner's"
    )
    func itemIDs() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<30 {
                    group.addTask { try await world.app("alice").sendSecure("secret \(index)") }
                }
                try await group.waitForAll()
            }
            var ids = Set<Int>()
            var texts = Set<String>()
            for _ in 0..<30 {
                let event = try await device.nextPush()
                ids.insert(event.fields["secureId"]?.integerValue ?? 0)
                texts.insert(event["text"] ?? "")
            }
            #expect(ids.count == 30)
            #expect(ids.allSatisfy { (1...Int(Int32.max)).contains($0) })
            #expect(!zip(ids.sorted(), ids.sorted().dropFirst()).contains { $0 + 1 == $1 })
            #expect(texts == Set((0..<30).map { "secret \($0)" }))
            for id in ids.prefix(3) {
                #expect(
                    try await world.backend("GET", "/api/notifications/\(id)", as: "bob").status.code == 404
                )
            }
        }
    }

    @Test(
        "rows 18 and 19: a GET makes nothing, and an unknown id is 404",
        arguments: ["1", "0", "-5", "abc", "99999999999999", "1.5"]
    )
    func unknownItems(id: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            #expect(
                try await world.backend("GET", "/api/notifications/\(id)", as: "alice").status.code == 404
            )
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "marker")
            #expect(try await device.nextText() == "From bob: marker")
        }
    }

    @Test("row 20: an item expires; Read survives a restart")
    func expiry() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            try await world.app("alice").sendSecure("short-lived")
            let id = try #require(try await device.nextPush().fields["secureId"]?.integerValue)
            await device.stop()
            await world.stopServer()
            try await world.startServer()
            let again = try await world.backend("GET", "/api/notifications/\(id)", as: "alice")
            #expect(again.text.contains(#""Read":true"#))
            world.clock.advance(by: .seconds(31 * 86400))
            #expect(
                try await world.backend("GET", "/api/notifications/\(id)", as: "alice").status.code == 404
            )
        }
    }

    // MARK: Rows 21, 22, 24, 25, 28, 29

    @Test("rows 21 and 29: the daemon reports success and failure as they are, with status and body")
    func trueReports() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            #expect(try await device.nextEvent("registered")["user"] == "alice")
            await #expect(throws: BackendError.self) { try await device.login("alice", password: "wrong") }
            let failed = try await device.nextEvent("registration_failed")
            #expect(failed.fields["status"] == 403)
            #expect(failed["domain"] == "Registration")
            #expect(try await device.status()["user"]?.stringValue == "alice")
            // The failed login may have changed the back end: the old one is registered anew.
            #expect(try await device.nextEvent("registered")["user"] == "alice")
            let results = try await device.daemon.send(to: "a||b", platforms: ["apns"], text: "x")
            #expect(results.first?.status == 400)
            #expect(results.first?.reason.contains("user name") == true)
        }
    }

    @Test("row 22: the description of a data object is refused with the reason; old descriptions are cleaned")
    func descriptions() async throws {
        try await World.run { world in
            let modern = "{LENGTH=32,BYTES=0X01080F16...CCD3DA}"
            let post = try await world.backend(
                "POST",
                "/api/register?handle=\(PercentEncoding.encode(modern))",
                as: "alice"
            )
            #expect(post.status.code == 400)
            #expect(post.text.contains("iOS 13"))
            let id = try await world.backend("POST", "/api/register", as: "alice").text.dropFirst().dropLast()
            let old =
                "<" + stride(from: 0, to: 64, by: 8).map { _ in "ab12cd34" }.joined(separator: " ") + ">"
            let put = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "alice",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(old)\"}"
            )
            #expect(put.status.code == 200)
            let registrationID = try #require(RegistrationID(String(id)))
            let registration = try #require(try await world.hub().registration(registrationID))
            #expect(registration.content.handle.text == String(repeating: "AB12CD34", count: 8))
            for handle in ["xyz", "ab1", ""] {
                let answer = try await world.backend(
                    "PUT",
                    "/api/register/\(id)",
                    as: "alice",
                    json: "{\"Platform\":\"apns\",\"Handle\":\"\(handle)\"}"
                )
                #expect(answer.status.code == 400, "\(handle)")
            }
        }
    }

    @Test("rows 24 and 25: 201 is success to our client; a Listen string cannot send")
    func sendRights() async throws {
        try await World.run { world in
            let id = try await world.hub().send(.template(#"{"messageParam":"x"}"#), tags: "World")
            #expect(id != nil)
            let refusal = await #expect(throws: HubError.self) {
                try await world.hub(full: false).send(.template(#"{"messageParam":"x"}"#), tags: "World")
            }
            #expect(refusal?.code == .unauthorized)
            #expect(refusal?.message.contains("Send") == true)
        }
    }

    @Test("row 28: silent pushes say so, also when the sender does not")
    func silentPushType() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            _ = try await world.hub().send(
                .native(.apns, #"{"aps":{"content-available":1,"sound":""},"inAppMessage":"hello"}"#),
                tags: "username:alice"
            )
            #expect(try await device.nextText() == "hello")
            let received = try #require(try await device.daemon.inboxEntries().first).notification
            #expect(received.header("apns-push-type") == "background")
            #expect(received.header("apns-priority") == "5")
        }
    }

    // MARK: T1 to T14

    @Test("T1: breaking-news templates of the same handle stay")
    func templatesStay() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.subscribe(["World"])
            let before = try await world.hub().registrations()
            func templates() async throws -> [Registration] {
                try await world.hub().registrations().filter { $0.content.template != nil }
            }
            try await device.login("alice")
            #expect(try await templates() == before)
            try await device.daemon.logout()
            // The next user's handle is another one; the template goes with it.
            try await device.login("bob")
            #expect(try await templates().map(\.id) == before.map(\.id))

            // Nor can the template's id be taken through the back end.
            let answer = try await world.backend(
                "PUT",
                "/api/register/\(before.first?.id.text ?? "")",
                as: "bob",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(try await device.handle())\"}"
            )
            #expect(answer.status.code == 403)
        }
    }

    @Test(
        "T2: to_tag is one user name",
        arguments: ["bob || World", "x && !y", "!bob", "a,b", " ", "", "bob)", "Ünal"]
    )
    func recipientNames(name: String) async throws {
        try await World.run { world in
            let answer = try await world.backend(
                "POST",
                "/api/notifications?pns=apns&to_tag=\(PercentEncoding.encode(name))",
                as: "bob",
                json: "\"x\""
            )
            #expect(answer.status.code == 400)
            #expect(answer.text.contains("user name"))
        }
    }

    @Test("T3: a channel URI travels encoded and is decoded once")
    func encodedHandle() async throws {
        try await World.run { world in
            let device = try await world.device("windows", .wns)
            try await device.login("alice")
            let registration = try #require(try await world.hub().registrations().first)
            let handle = try await device.handle()
            #expect(registration.content.handle.text == handle)
            #expect(registration.content.handle.text.contains("?token="))
        }
    }

    @Test(
        "T4: one of the two parameters alone is 400 and names the other",
        arguments: [("pns=apns", "to_tag"), ("to_tag=bob", "pns")]
    )
    func halfTheParameters(query: String, missing: String) async throws {
        try await World.run { world in
            let answer = try await world.backend(
                "POST",
                "/api/notifications?\(query)",
                as: "alice",
                json: "\"x\""
            )
            #expect(answer.status.code == 400)
            #expect(answer.text.contains("'\(missing)'"))
        }
    }

    @Test("mpns can be registered, and is refused to notify with the reason")
    func windowsPhone() async throws {
        try await World.run { world in
            _ = try await register(
                world,
                "alice",
                handle: "http://s.notify.live.net/u/1/a?b=c&d=e",
                platform: "mpns"
            )
            let answer = try await world.backend(
                "POST",
                "/api/notifications?pns=mpns&to_tag=alice",
                as: "bob",
                json: "\"x\""
            )
            #expect(answer.status.code == 400)
            #expect(answer.text.contains("shut"))
        }
    }

    @Test(
        "T9: a command that needs the handle says that it is missing; send before a registration is refused"
    )
    func beforeTheHandle() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            await #expect(throws: (any Error).self) {
                try await device.daemon.send(to: "bob", platforms: ["apns"], text: "x")
            }
            await device.stop()
            await world.stopServer()
            try await world.startUnconnected(device)
            let login = Task { try await device.login("alice") }
            let failure = try await device.nextEvent("disconnected")
            #expect(failure["reason"]?.isEmpty == false)
            // The wait for the handle ends on the World's clock.
            while !login.isCancelled, try await device.daemon.isWaitingForHandleForTests() == false {
                await Task.yield()
            }
            world.clock.advance(by: .seconds(11))
            await #expect(throws: (any Error).self) { try await login.value }
            try await world.startServer()
        }
    }

    @Test("T11: what is wanted is stored first; status shows what the hub confirmed")
    func wantedAndConfirmed() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.subscribe(["World"])
            try await device.daemon.breakHubForTests()
            await #expect(throws: (any Error).self) { try await device.subscribe(["World", "Sports"]) }
            let (wanted, confirmed) = try await device.daemon.categories()
            #expect(wanted == ["World", "Sports"])
            #expect(confirmed == ["World"])
            await device.stop()
            try await world.start(device)
            _ = try await device.nextEvent("subscribed")
            #expect(try await device.daemon.categories().confirmed == ["World", "Sports"])
        }
    }

    @Test("T13: the cached id is bound to user and handle; a changed handle registers again at once")
    func cachedID() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            let first = try await device.status()["RegistrationId"]?.stringValue
            try await device.daemon.renewHandle()
            _ = try await device.nextEvent("handle")
            _ = try await device.nextEvent("registered")
            let second = try await device.status()["RegistrationId"]?.stringValue
            #expect(first != second)
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "there")
            #expect(try await device.nextText() == "From bob: there")
        }
    }
}

/// A back end of its own, outside development, with its user store.
enum BackendAlone {
    static func run(hub: String, authorityFile: String, _ body: (String) async throws -> Void) async throws {
        try await ScratchFolder.run { folder in
            var configuration = ServerConfiguration(statePath: folder)
            configuration.services = [.backend]
            configuration.useFreePorts()
            configuration.backendHub = hub
            configuration.backendAuthorityFile = authorityFile
            let server = try await TidingsServer.start(
                configuration,
                time: SystemTimeSource(),
                log: .inMemory()
            )
            do {
                let store = try #require(server.backendStore)
                try await store.setUser("alice", passwordHash: try Passwords.hash("a:b:c"))
                try await store.setUser("bob", passwordHash: try Passwords.hash("пароль"))
                try await body(try #require(server.endpoints.backend))
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }
    }
}

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
    let token = String(repeating: "AB12", count: 16)

    func register(
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

    func tags(_ world: World, _ id: String) async throws -> Set<String>? {
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
}

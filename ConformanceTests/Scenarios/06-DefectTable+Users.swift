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

/// Rows 6 to 13, 23 and 27: who is it, and whose registration.
extension DefectTable {
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

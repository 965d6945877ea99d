import HubClient
import JSONBytes
import Testing
import TidingsConformance
import TidingsModels

/// Two users take turns on one device: nothing of the first is shown to the second.
@Suite("10 Two users, one device")
struct TwoUsersOneDevice {
    @Test("after the login changes, no push of the first user appears, whatever was under way")
    func changeOfUser() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .apns)
            try await device.login("alice")
            try await device.subscribe(["World"])
            try await world.app("carol").notify(platform: "apns", user: "alice", text: "first")
            #expect(try await device.nextText() == "From carol: first")
            let old = try await device.handle()

            try await device.login("bob")
            #expect(try await device.handle() != old)
            // As if a provider had taken it before the change and delivers now.
            let late = try await world.hub().create(
                RegistrationContent(
                    handle: try PlatformHandle(old, platform: .apns),
                    tags: [try HubTag("late")]
                )
            )
            let outcome = try await world.hub().testSend(
                .native(.apns, #"{"aps":{"alert":"for alice"}}"#),
                tags: "late"
            )
            #expect(outcome.failure == 1)
            // The hub may have removed it already: the handle died about when it was registered.
            _ = try await world.hub().delete(late.id)
            try await world.app("carol").notify(platform: "apns", user: "alice", text: "too late")
            try await world.app("carol").notify(platform: "apns", user: "bob", text: "for bob")
            #expect(try await device.nextText() == "From carol: for bob")
            _ = try await world.hub().send(.template(#"{"messageParam":"news"}"#), tags: "World")
            #expect(try await device.nextText() == "news")
            #expect(try await world.hub().registrations(tag: try HubTag.username("alice")).isEmpty)
            #expect(try await world.hub().registrations(tag: try HubTag.username("bob")).count == 1)
            // The inbox is the current user's.
            #expect(try await device.daemon.inboxEntries().map(\.text) == ["From carol: for bob", "news"])
            try await device.login("alice")
            #expect(try await device.daemon.inboxEntries().map(\.text) == ["From carol: first"])
        }
    }

    @Test("logged out while the back end is away: what was sent to the first user stays unseen")
    func logoutOffline() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .fcmV1)
            try await device.login("alice")
            let handle = try await device.handle()
            await device.stop()
            let sent = try await world.app("carol").notify(platform: "fcm", user: "alice", text: "waits")
            _ = try await world.outcome(try #require(sent["fcm"]))
            let secure = try await world.app("carol").sendSecure("the secret", to: "alice")
            for id in secure.values { _ = try await world.outcome(id) }
            await world.stopServer()
            try await world.startUnconnected(device)
            // Nobody can be told; the device forgets all the same.
            await #expect(throws: (any Error).self) { try await device.daemon.logout() }
            try await world.startServer()
            _ = try await device.nextEvent("connected")
            _ = try await device.nextEvent("handle")
            #expect(try await device.handle() != handle)
            try await device.login("bob")
            try await world.app("carol").notify(platform: "fcm", user: "bob", text: "for bob")
            #expect(try await device.nextText() == "From carol: for bob")
            #expect(try await device.daemon.inboxEntries().count == 1)
            #expect(!world.logBytes.contains("the secret".utf8))
        }
    }

    @Test("a secret that the first user did not fetch waits for that user, not for the next one")
    func pendingSecret() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .wns)
            try await device.login("alice")
            try await device.daemon.replacePasswordForTests("changed")
            try await world.app("carol").sendSecure("only for alice", to: "alice")
            #expect(try await device.nextPush().name == "notice")
            try await device.login("bob")
            try await world.app("carol").notify(platform: "wns", user: "bob", text: "for bob")
            #expect(try await device.nextText() == "From carol: for bob")
            try await device.login("alice")
            #expect(try await device.nextText() == "only for alice")
        }
    }

    @Test(
        "a text whose user was replaced while it was being shown is shown at that user's next login, and then no more"
    )
    func interruptedText() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .wns)
            try await device.login("alice")
            try await world.app("carol").notify(platform: "wns", user: "alice", text: "once")
            #expect(try await device.nextText() == "From carol: once")
            try await device.daemon.awaitLoginForTests(
                try #require(try await device.daemon.inboxEntries().first?.id)
            )
            try await device.login("bob")
            try await device.login("alice")
            #expect(try await device.nextText() == "From carol: once")
            try await device.login("alice")
            try await world.app("carol").notify(platform: "wns", user: "alice", text: "next")
            #expect(try await device.nextText() == "From carol: next")
        }
    }

    @Test("a login that is refused changes nothing: the push that came meanwhile is shown")
    func refusedLogin() async throws {
        try await World.run { world in
            let device = try await world.device("tablet", .apns)
            try await device.login("alice")
            let handle = try await device.handle()
            await #expect(throws: (any Error).self) { try await device.login("bob", password: "wrong") }
            try await world.app("carol").notify(platform: "apns", user: "alice", text: "still here")
            #expect(try await device.nextText() == "From carol: still here")
            #expect(try await device.handle() == handle)
        }
    }
}

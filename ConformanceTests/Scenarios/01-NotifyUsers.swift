import HubClient
import TidingsConformance
import TidingsModels
import Testing

/// Tutorial 01: notify a user.
///
/// Alice has a device on each platform, Bob has one that gets nothing. A send to Alice names a platform at a time, and a
/// platform that fails stands beside two that work.
@Suite("01 Notify users")
struct NotifyUsers {
    @Test(
        "a push to a user reaches each of their devices and nobody else",
        arguments: [Platform.apns, .fcmV1, .wns]
    )
    func reachesTheUser(platform: Platform) async throws {
        try await World.run { world in
            let alice = try await world.device("alice", platform)
            let bystander = try await world.device("bystander", platform)
            try await alice.login("alice")
            try await bystander.login("bob")

            try await world.app("carol").notify(platform: platform.appName, user: "alice", text: "Lunch?")

            #expect(try await alice.nextText() == "From carol: Lunch?")
            // The marker proves that nothing came before it.
            try await world.app("carol").notify(platform: platform.appName, user: "bob", text: "marker")
            #expect(try await bystander.nextText() == "From carol: marker")
        }
    }

    @Test("one request for each platform; one that fails does not stop the others")
    func failingPlatform() async throws {
        try await World.run { world in
            let apple = try await world.device("apple", .apns)
            let windows = try await world.device("windows", .wns)
            try await apple.login("alice")
            try await windows.login("alice")

            let results = try await apple.daemon.send(
                to: "alice",
                platforms: ["apns", "mpns", "wns"],
                text: "Hello"
            )

            #expect(results.map(\.target) == ["apns", "mpns", "wns"])
            #expect(results.map(\.isSuccess) == [true, false, true])
            #expect(results.map(\.status) == [200, 400, 200])
            #expect(results[1].reason.contains("mpns"))
            #expect(try await apple.nextText() == "From alice: Hello")
            #expect(try await windows.nextText() == "From alice: Hello")
        }
    }

    @Test("a user without a device: accepted, and the outcome says that no target was found")
    func unknownUser() async throws {
        try await World.run { world in
            let answer = try await world.request(
                "POST",
                try world.backendURL + "/api/notifications?pns=apns&to_tag=nobody",
                fields: ["Authorization": basic("carol"), "Content-Type": "application/json"],
                body: Array("\"Hi\"".utf8)
            )
            #expect(answer.status.code == 200)
            #expect(answer.body.isEmpty)
            let id = try #require(NotificationID(answer.fields["Tidings-Notification-Id"] ?? ""))
            #expect(try await world.outcome(id).state == .noTargetFound)
        }
    }

    @Test("a device registered at the hub and through the back end shows a push once")
    func registeredTwice() async throws {
        try await World.run { world in
            let device = try await world.device("alice")
            try await device.login("alice")
            let handle = try PlatformHandle(try await device.handle(), platform: .apns)
            _ = try await world.hub().create(
                RegistrationContent(handle: handle, tags: [try HubTag.username("alice")])
            )

            let id = try #require(
                try await world.hub().send(
                    .native(.apns, #"{"aps":{"alert":"once"}}"#),
                    tags: "username:alice"
                )
            )

            let details = try await world.outcome(id)
            #expect(details.targetCount == 2)
            #expect(details.outcomes == [.apns: [.success: 1, .skipped: 1]])
            #expect(try await device.nextText() == "once")
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "marker")
            #expect(try await device.nextText() == "From bob: marker")
        }
    }
}

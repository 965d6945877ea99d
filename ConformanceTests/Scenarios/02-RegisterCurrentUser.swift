import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// Tutorial 02: register the current user's device under its installation id.
///
/// The registration belongs to the installation: a repeated login, a new token and a new user replace it, never add to it.
@Suite("02 Register the current user")
struct RegisterCurrentUser {
    private func registrations(_ world: World, _ user: String) async throws -> [Registration] {
        try await world.hub().registrations(tag: try HubTag.username(user))
    }

    private var byInstallation: World.DeviceOptions {
        var options = World.DeviceOptions()
        options.registersByInstallation = true
        return options
    }

    @Test(
        "the device is registered with user and installation, and a push reaches it",
        arguments: [Platform.apns, .fcmV1, .wns]
    )
    func reachesTheUser(platform: Platform) async throws {
        try await World.run { world in
            let device = try await world.device("phone", platform, byInstallation)
            try await device.login("alice")
            let status = try await device.status()
            let installation = try #require(status["PushToUserInstallationId"]?.stringValue)

            let registration = try #require(try await registrations(world, "alice").first)
            #expect(
                Set(registration.content.tags.map(\.text)) == [
                    "username:alice", "installation:\(installation)",
                ]
            )

            try await world.app("bob").notify(platform: platform.appName, user: "alice", text: "Hi")
            #expect(try await device.nextText() == "From bob: Hi")
        }
    }

    @Test("a repeated login replaces the registration")
    func repeatedLogin() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns, byInstallation)
            try await device.login("alice")
            let first = try await registrations(world, "alice")
            try await device.login("alice")
            let second = try await registrations(world, "alice")
            #expect(first.count == 1)
            #expect(second.map(\.id) == first.map(\.id))
            #expect(second.first?.etag == 2)
        }
    }

    @Test("a new token replaces the old one")
    func newToken() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns, byInstallation)
            try await device.login("alice")
            let old = try await device.handle()

            try await device.daemon.renewHandle()
            _ = try await device.nextEvent("handle")
            _ = try await device.nextEvent("registered")

            let found = try await registrations(world, "alice")
            #expect(found.count == 1)
            #expect(found.first?.content.handle.text.lowercased() != old)
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "after")
            #expect(try await device.nextText() == "From bob: after")
        }
    }

    @Test("a new user takes the device over")
    func newUser() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns, byInstallation)
            try await device.login("alice")
            try await device.login("bob")
            #expect(try await registrations(world, "alice").isEmpty)
            #expect(try await registrations(world, "bob").count == 1)

            try await world.app("carol").notify(platform: "apns", user: "alice", text: "for alice")
            try await world.app("carol").notify(platform: "apns", user: "bob", text: "for bob")
            #expect(try await device.nextText() == "From carol: for bob")
        }
    }

    @Test("logout deletes the registration and forgets the login")
    func logout() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns, byInstallation)
            try await device.login("alice")
            try await device.daemon.logout()
            #expect(try await registrations(world, "alice").isEmpty)
            let status = try await device.status()
            #expect(status["user"] == nil)
            #expect(status["RegistrationId"] == nil)
        }
    }
}

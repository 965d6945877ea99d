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

/// T1 to T14 of the coverage list.
extension DefectTable {
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

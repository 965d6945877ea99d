import HTTPMessages
import HTTPServing
import JSONBytes
import ProcessLifecycle
import Testing
import TidingsConformance
import TidingsModels

/// What a device does when its stored registration id is no longer good.
@Suite("08 Gone registrations")
struct GoneRegistrations {
    private let day = Duration.seconds(25 * 3600)

    /// Stops the device, lets its registration grow old, and starts it again.
    private func restart(_ device: WorldDevice, in world: World) async throws {
        await device.stop()
        world.clock.advance(by: day)
        try await world.start(device)
    }

    @Test("410 on PUT: the device forgets the id, asks for another and registers with it, once")
    func onceMore() async throws {
        try await ScriptedServer.run { backend, address in
            try await World.run { world in
                var options = World.DeviceOptions()
                options.backend = address
                backend.expect([HTTPResponse(200, text: "\"1-1-1\""), HTTPResponse(200)])
                let device = try await world.device("phone", .apns, options)
                try await device.login("alice")
                #expect(backend.requests == ["POST /api/register", "PUT /api/register/1-1-1"])
                #expect(try await device.nextEvent("registered")["registrationId"] == "1-1-1")

                backend.expect([
                    HTTPResponse(410), HTTPResponse(200, text: "\"2-2-2\""), HTTPResponse(200),
                ])
                try await restart(device, in: world)

                #expect(try await device.nextEvent("registered")["registrationId"] == "2-2-2")
                #expect(
                    backend.requests == [
                        "PUT /api/register/1-1-1", "POST /api/register", "PUT /api/register/2-2-2",
                    ]
                )

                // The new id is refused as well: that is reported, not tried for ever.
                backend.expect([
                    HTTPResponse(410), HTTPResponse(200, text: "\"3-3-3\""), HTTPResponse(410),
                ])
                try await restart(device, in: world)
                let failed = try await device.nextEvent("registration_failed")
                #expect(failed.fields["status"]?.integerValue == 410)
                #expect(
                    backend.requests == [
                        "PUT /api/register/2-2-2", "POST /api/register", "PUT /api/register/3-3-3",
                    ]
                )
                #expect(try await device.status()["RegistrationId"] == nil)

                // The next start has no id left to offer.
                backend.expect([HTTPResponse(200, text: "\"4-4-4\""), HTTPResponse(200)])
                try await restart(device, in: world)
                #expect(try await device.nextEvent("registered")["registrationId"] == "4-4-4")
                #expect(backend.requests == ["POST /api/register", "PUT /api/register/4-4-4"])
            }
        }
    }

    @Test("an id that no hub issues: back end and hub answer 410, and the device is registered anew at both")
    func unusableIDs() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await device.subscribe(["World"])
            await device.stop()
            let path = device.configuration.statePath + "/device.json"
            let bytes = try Files.read(path) ?? []
            var state = try JSONValue(parsing: bytes).objectValue ?? JSONObject()
            state["RegistrationId"] = "not-an-id"
            var news = try #require(state["BreakingNewsCategories"]?.objectValue)
            var confirmed = try #require(news["confirmed"]?.objectValue)
            confirmed["registrationId"] = "7-7-7"
            news["confirmed"] = .object(confirmed)
            state["BreakingNewsCategories"] = .object(news)
            try Files.replace(path, with: JSONValue.object(state).serialized())
            for registration in try await world.hub().registrations() {
                try await world.hub().delete(registration.id)
            }

            world.clock.advance(by: day)
            try await world.start(device)
            let registered = try await device.nextEvent("registered")
            #expect(registered["registrationId"] != "not-an-id")
            _ = try await device.nextEvent("subscribed")
            #expect(try await world.hub().registrations().count == 2)
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "back")
            #expect(try await device.nextText() == "From bob: back")
            _ = try await world.hub().send(.template(#"{"messageParam":"news"}"#), tags: "World")
            #expect(try await device.nextText() == "news")
        }
    }
}

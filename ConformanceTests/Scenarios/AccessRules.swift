import HTTPMessages
import HubClient
import HubCore
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Who may do what: beyond the rights of a key.
@Suite("Access")
struct AccessRules {
    private func content(_ handle: String, _ tag: String) throws -> RegistrationContent {
        RegistrationContent(
            handle: try PlatformHandle(handle, platform: .apns),
            tags: [try HubTag(tag)]
        )
    }

    @Test(
        "listen: a device changes its own registrations; those of a Manage key only where the original's way is set"
    )
    func listenModes() async throws {
        for mode in ListenMode.allCases {
            var options = World.Options()
            options.configure = { $0.listenMode = mode }
            try await World.run(options) { world in
                let (backend, device) = (try world.hub(), try world.hub(full: false))
                // Its own: made, changed, deleted.
                let own = try await device.create(try content("AA01", "a"))
                #expect(
                    try await device.put(own.id, try content("AA01", "b")).content.tags.map(\.text) == ["b"]
                )
                #expect(try await device.delete(own.id))
                // Made by the device, changed by the back end: still the device's.
                let shared = try await device.create(try content("AA02", "a"))
                _ = try await backend.put(shared.id, try content("AA02", "b"))
                #expect(
                    try await device.put(shared.id, try content("AA02", "c")).content.tags.map(\.text) == [
                        "c"
                    ]
                )

                let managed = try await backend.create(try content("AA03", "username:bob"))
                let stolen = try content("EE03", "username:bob")
                switch mode {
                case .original:
                    #expect(try await device.put(managed.id, stolen).content == stolen)
                    #expect(try await device.delete(managed.id))
                case .strict:
                    let put = await #expect(throws: HubError.self) {
                        try await device.put(managed.id, stolen)
                    }
                    #expect(put?.code == .unauthorized && put?.message.contains("has Manage") == true)
                    let delete = await #expect(throws: HubError.self) { try await device.delete(managed.id) }
                    #expect(delete?.code == .unauthorized)
                    // It survives a restart, and the back end is not bound.
                    await world.stopServer()
                    try await world.startServer()
                    let again = try world.hub(full: false)
                    await #expect(throws: HubError.self) { try await again.put(managed.id, stolen) }
                    #expect(try await world.hub().registration(managed.id)?.content.handle.text == "AA03")
                    #expect(try await world.hub().put(managed.id, stolen).content == stolen)
                    #expect(try await world.hub().delete(managed.id))
                }
            }
        }
    }

    @Test("listen is strict outside development")
    func listenDefault() async throws {
        try await ScratchFolder.run { folder in
            var configuration = ServerConfiguration(statePath: folder)
            configuration.services = [.hub]
            configuration.useFreePorts()
            configuration.hubs = [.init(name: "h")]
            let server = try await TidingsServer.start(
                configuration,
                time: WorldClock(),
                log: .inMemory()
            )
            #expect(server.host?.hub("h")?.listenMode == .strict)
            await server.stop()
            configuration.isDevelopment = true
            let development = try await TidingsServer.start(
                configuration,
                time: WorldClock(),
                log: .inMemory()
            )
            #expect(development.host?.hub("h")?.listenMode == .original)
            await development.stop()
        }
    }
}

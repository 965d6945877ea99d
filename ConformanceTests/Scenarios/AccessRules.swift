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

    @Test(
        "a channel that leads elsewhere is refused when it is stored: registration, installation, tile, import"
    )
    func channels() async throws {
        var options = World.Options()
        options.configure = { $0.channelMode = .strict }
        try await World.run(options) { world in
            let hub = try world.hub()
            let good: [(Platform, String)] = [
                (.wns, "https://db5p.notify.windows.com/?token=x"),
                (.wns, try world.gatewayURL + "/wns/?token=x"),
                (.mpns, "http://db3.notify.live.net/throttledthirdparty/01.00/x"),
                (.mpns, try world.gatewayURL + "/mpns/x"),
            ]
            for (platform, channel) in good {
                let handle = try PlatformHandle(channel, platform: platform)
                #expect(
                    try await hub.create(RegistrationContent(handle: handle, tags: [])).content.handle
                        == handle
                )
            }
            let bad: [(Platform, String)] = [
                (.wns, "http://db5p.notify.windows.com/?token=x"), (.wns, "https://127.0.0.1/?token=x"),
                (.wns, "https://notify.windows.com.evil.example/"), (.mpns, "http://169.254.169.254/latest"),
                (.mpns, "http://notify.live.net:8080/x"),
                (.browser, "https://192.168.0.1/push"), (.browser, "https://0x7f.1/push"),
                (.browser, "https://localhost/push"), (.browser, "https://[::1]/push"),
                (.browser, "http://push.example.com/push"), (.browser, "https://intranet/push"),
            ]
            for (platform, channel) in bad {
                let handle = try PlatformHandle(
                    channel,
                    platform: platform,
                    keys: platform == .browser ? SubscriptionKeys(p256dh: "BAAA", auth: "AAAA") : nil
                )
                let error = await #expect(throws: HubError.self, "\(channel)") {
                    try await hub.create(RegistrationContent(handle: handle, tags: []))
                }
                let origin = HTTPURL(channel)?.origin ?? "?"
                #expect(
                    error?.code == .badRequest && error?.message.contains("leads to \(origin)") == true,
                    "\(channel)"
                )
            }
            let evil = try PlatformHandle("https://evil.example/", platform: .wns)
            await #expect(throws: HubError.self) { try await hub.put(Installation(id: "i", handle: evil)) }
            let own = try PlatformHandle(good[0].1, platform: .wns)
            let tile = SecondaryTile(name: "t", handle: evil)
            await #expect(throws: HubError.self) {
                try await hub.put(Installation(id: "i", handle: own, secondaryTiles: [tile]))
            }
            try await hub.put(Installation(id: "i", handle: own))
            await #expect(throws: HubError.self) {
                try await hub.patch(
                    "i",
                    [InstallationChange(.replace, "/pushChannel", "https://evil.example/")]
                )
            }
        }
    }

    @Test("listen and channels are strict outside development")
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
            #expect(server.host?.hub("h")?.channels.mode == .strict)
            await server.stop()
            configuration.isDevelopment = true
            let development = try await TidingsServer.start(
                configuration,
                time: WorldClock(),
                log: .inMemory()
            )
            #expect(development.host?.hub("h")?.listenMode == .original)
            #expect(development.host?.hub("h")?.channels.mode == .original)
            await development.stop()
        }
    }
}

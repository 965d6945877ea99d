import HubClient
import JSONBytes
import Testing
import TidingsConformance
import TidingsModels

/// A device that was away gets everything that has not expired, once, oldest first, while new pushes come.
@Suite("07 Offline, then back")
struct OfflineThenBack {
    private func push(_ text: String, expires: Int64? = nil) -> HubNotification {
        .native(
            .apns,
            "{\"aps\":{\"alert\":\"\(text)\"}}",
            headers: expires.map { [.init("apns-expiration", String($0))] } ?? []
        )
    }

    @Test("everything unexpired arrives once and in order; expiry 0 is dropped and counted")
    func backlog() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            let hub = try world.hub()
            try await world.registerNative(device, .apns, tag: "me")
            await device.stop()
            func send(_ notification: HubNotification) async throws {
                #expect(try await hub.testSend(notification, tags: "me").success == 1)
            }
            let counters = try world.server.counters
            let dropped = counters["gateway_messages_dropped_total"]
            try await send(push("now or never", expires: 0))
            #expect(counters["gateway_messages_dropped_total"] == dropped + 1)
            try await send(push("short", expires: world.clock.now.seconds + 60))
            for index in 1...150 { try await send(push("old \(index)")) }
            world.clock.advance(by: .seconds(61))

            // The device comes back while others go on sending.
            async let live: Void = {
                for index in 1...50 { try await send(push("new \(index)")) }
            }()
            try await world.start(device)
            var texts: [String] = []
            while texts.count < 200 { texts.append(try await device.nextText()) }
            try await live
            let expected = (1...150).map { "old \($0)" } + (1...50).map { "new \($0)" }
            #expect(texts == expected)

            // Nothing comes twice: neither after a new connection nor after a new start.
            try await device.daemon.reconnect()
            _ = try await device.nextEvent("connected")
            await device.stop()
            try await world.start(device)
            try await send(push("last"))
            #expect(try await device.nextText() == "last")
            #expect(try await device.daemon.inboxEntries().count == 201)
        }
    }

    @Test(
        "the mailbox of a device that stays away is bounded: what does not fit is refused, nothing is pushed out"
    )
    func fullMailbox() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .fcmV1)
            let hub = try world.hub()
            try await world.registerNative(device, .fcmV1, tag: "me")
            await device.stop()
            func send(_ index: Int) async throws -> NotificationOutcome {
                try await hub.testSend(
                    .native(.fcmV1, "{\"message\":{\"data\":{\"message\":\"\(index)\"}}}"),
                    tags: "me"
                )
            }
            let taken = try await withThrowingTaskGroup(of: Int.self) { group in
                var taken = 0
                for index in 0..<1000 {
                    // A few at a time: the other tests need the machine as well.
                    if index >= 8 { taken += try await group.next() ?? 0 }
                    group.addTask { try await send(index).success }
                }
                return try await group.reduce(taken, +)
            }
            #expect(taken == 1000)
            let refused = try await send(1000)
            #expect(refused.failure == 1)
            #expect(refused.results.first?.outcome.contains("limits") == true, "\(refused)")
            try await world.start(device)
            var texts = Set<String>()
            for _ in 0..<1000 { texts.insert(try await device.nextText()) }
            #expect(texts == Set((0..<1000).map(String.init)))
        }
    }
}

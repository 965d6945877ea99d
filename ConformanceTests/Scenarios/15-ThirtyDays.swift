import HTTPMessages
import HubClient
import TidingsConformance
import TidingsModels
import Testing

/// Schedule, TTL, token expiry and retention, on a clock that the test moves: nothing here waits for real time.
@Suite("15 Thirty days")
struct ThirtyDays {
    private func push(_ text: String, expires: Int64? = nil) -> HubNotification {
        .native(
            .apns,
            "{\"aps\":{\"alert\":\"\(text)\"}}",
            headers: expires.map { [.init("apns-expiration", String($0))] } ?? []
        )
    }

    @Test(
        "thirty days pass: tokens are renewed, what expired is dropped and counted, what is due is sent, details and items are kept as promised"
    )
    func month() async throws {
        var options = World.Options()
        options.clock = WorldClock(standingAt: Timestamp(seconds: 1_893_456_000))
        try await World.run(options) { world in
            let hub = try world.hub()
            let start = world.clock.now
            var devices: [WorldDevice] = []
            for platform in TemplateTargets.platforms {
                let device = try await world.device(platform.appName, platform)
                let handle = try await device.handle()
                try await TemplateTargets.register(handle, platform, tags: ["daily"], at: world.hub())
                devices.append(device)
            }
            try await world.registerNative(devices[0], .apns, tag: "phone")
            let away = try await world.device("away", .apns)
            try await world.registerNative(away, .apns, tag: "away")
            await away.stop()
            let reader = try await world.device("reader", .apns)
            try await reader.login("alice")
            let sent = try await world.app("alice").sendSecure("kept for a month", to: "alice")
            #expect(sent.count == 4)
            let shown = try await reader.nextPush()
            let item = try #require(shown.fields["secureId"]?.integerValue)
            func itemStatus() async throws -> Int {
                try await world.backend("GET", "/api/notifications/\(item)", as: "alice").status.code
            }
            let first = try #require(try await hub.send(push("first"), tags: "nobody"))
            _ = try await world.outcome(first)

            // A week's schedule: one for each day, one of them taken back.
            var scheduled: [NotificationID] = []
            for day in 1...7 {
                let id = try await hub.schedule(
                    push("scheduled \(day)"),
                    tags: "phone",
                    at: start + .seconds(day * 86400)
                )
                scheduled.append(try #require(id))
            }
            #expect(try await hub.details(scheduled[3]).state == .scheduled)
            try await hub.cancel(scheduled[3])
            let cancelled = await #expect(throws: HubError.self) { try await hub.cancel(scheduled[3]) }
            #expect(cancelled?.code == .notFound)

            let counters = try world.server.counters
            var daily: [NotificationID] = []
            let began = ContinuousClock.now
            for day in 1...30 {
                world.clock.advance(by: .seconds(86400))
                if day <= 7, day != 4 { #expect(try await devices[0].nextText() == "scheduled \(day)") }
                // Three days to live, and in the mailbox before the next day comes.
                let expires = world.clock.now.seconds + 3 * 86400
                async let kept = {
                    let id = try await hub.send(push("away \(day)", expires: expires), tags: "away")
                    return try await world.outcome(try #require(id)).outcomes
                }()
                // Provider tokens live an hour: each day needs new ones, and the gateway refuses old ones.
                let id = try await hub.send(.template("{\"messageParam\":\"day \(day)\"}"), tags: "daily")
                daily.append(try #require(id))
                for device in devices { #expect(try await device.nextText() == "day \(day)") }
                #expect(try await kept == [.apns: [.success: 1]])
                if day == 29 { #expect(try await itemStatus() == 200) }
            }
            print("thirty days were replayed in \(ContinuousClock.now - began)")
            for id in daily {
                let details = try await world.outcome(id)
                let each = [Outcome.success: 1]
                #expect(details.outcomes == [.apns: each, .fcmV1: each, .wns: each], "\(details)")
            }
            #expect(try await hub.details(scheduled[3]).state == .canceled)
            for (day, id) in scheduled.enumerated() where day != 3 {
                #expect(try await world.outcome(id).outcomes == [.apns: [.success: 1]])
            }

            // On day 30 what was sent on day 27 has expired to the second.
            try await world.start(away)
            for day in 28...30 { #expect(try await away.nextText() == "away \(day)") }
            try await world.registerNative(away, .apns, tag: "last")
            _ = try await hub.send(push("last"), tags: "last")
            #expect(try await away.nextText() == "last")

            #expect(try await hub.details(first).state == .noTargetFound)
            world.clock.advance(by: .seconds(61))
            #expect(try await itemStatus() == 404)
            // The sweeps run on the same clock, by themselves.
            while counters["gateway_messages_expired_total"] < 27 {
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(counters["gateway_messages_expired_total"] == 27)
            var gone: HubError?
            while gone == nil {
                do {
                    _ = try await hub.details(first)
                    try await Task.sleep(for: .milliseconds(2))
                } catch let error as HubError { gone = error }
            }
            #expect(gone?.code == .notFound)
        }
    }

    @Test(
        "a scheduled send: the forms of the time, what is refused, and a restart before its moment",
        arguments: [
            "2030-01-02T10:20:30", "2030-01-02'T'10:20:30", "2030-01-02T10:20:30.000Z",
            "2030-01-02T11:20:30+01:00",
        ]
    )
    func forms(time: String) async throws {
        var options = World.Options()
        let start = try #require(Timestamp(parsing: "2030-01-01T00:00:00Z"))
        options.clock = WorldClock(standingAt: start)
        try await World.run(options) { world in
            let device = try await world.device("phone", .apns)
            try await world.registerNative(device, .apns, tag: "me")
            func post(_ time: String?) async throws -> HTTPAnswer {
                var fields: HTTPFields = [
                    "ServiceBusNotification-Format": "apple", "ServiceBusNotification-Tags": "me",
                    "Content-Type": "application/json",
                ]
                if let time { fields["ServiceBusNotification-ScheduleTime"] = time }
                return try await world.signed(
                    "POST",
                    "/tidings/schedulednotifications/?api-version=2015-01",
                    fields: fields,
                    body: #"{"aps":{"alert":"now"}}"#
                )
            }
            for bad in [nil, "", "tomorrow", "2030-13-01T00:00:00", "2030-01-08T00:00:01"] as [String?] {
                let answer = try await post(bad)
                #expect(answer.status.code == 400, "\(bad ?? "none"): \(answer.text)")
            }
            let answer = try await post(time)
            #expect(answer.status.code == 201 && answer.body.isEmpty)
            let location = try #require(answer.fields["Location"])
            #expect(
                location.contains("/tidings/schedulednotifications/")
                    && location.hasSuffix("?api-version=2015-01")
            )
            let last = try #require(location.prefix { $0 != "?" }.split(separator: "/").last)
            let id = try #require(NotificationID(String(last)))
            #expect(try await world.hub().details(id).state == .scheduled)
            await device.stop()
            await world.stopServer()
            try await world.startServer()
            try await world.start(device)
            world.clock.advance(by: .seconds(123_629))
            #expect(try await world.hub().details(id).state == .scheduled)
            world.clock.advance(by: .seconds(1))
            #expect(try await device.nextText() == "now")
            #expect(try await world.outcome(id).state == .completed)
            // A past time means now.
            #expect(try await post("2029-12-31T23:59:59").status.code == 201)
            #expect(try await device.nextText() == "now")
        }
    }
}

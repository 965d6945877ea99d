import HTTPMessages
import HubClient
import JSONBytes
import Testing
import TidingsConformance
import TidingsModels

extension World {
    /// Asks the gateway for a fault; its number.
    @discardableResult
    func fault(_ json: String) async throws -> Int {
        let answer = try await request(
            "POST",
            try gatewayURL + "/-/faults",
            fields: ["Content-Type": "application/json"],
            body: Array(json.utf8)
        )
        let number = (try? JSONValue(parsing: answer.body))?["id"]?.integerValue
        guard answer.status.code == 201, let number else { throw WorldFailure(answer.text) }
        return number
    }

    func clearFaults() async throws {
        _ = try await request("DELETE", try gatewayURL + "/-/faults")
    }
}

/// What our senders make of every fault that a push service can have: the outcome, whether it was tried again, and whether the
/// registration stays.
@Suite("Senders under faults", .serialized)
struct SenderFaults {
    static let platforms: [Platform] = [.apns, .fcmV1, .wns, .browser, .mpns, .adm]

    struct Row: Sendable, CustomTestStringConvertible {
        let fault: String
        /// By platform where they differ.
        let outcome: @Sendable (Platform) -> Outcome
        /// Tries in all, the first one included; the fault goes away after one push unless it is for good.
        let isRetried: @Sendable (Platform) -> Bool
        let isKept: @Sendable (Platform) -> Bool
        var testDescription: String { fault }

        init(
            _ fault: String,
            _ outcome: @escaping @Sendable (Platform) -> Outcome,
            retried: @escaping @Sendable (Platform) -> Bool = { _ in false },
            kept: @escaping @Sendable (Platform) -> Bool = { _ in true }
        ) {
            self.fault = fault
            self.outcome = outcome
            isRetried = retried
            isKept = kept
        }
    }

    private static let always: @Sendable (Platform) -> Bool = { _ in true }

    static let rows: [Row] = [
        // A message error never costs a registration; a token error always does.
        Row(
            #""answer","status":400"#,
            { $0 == .apns ? .badChannel : .invalidNotificationFormat },
            kept: { $0 != .apns }
        ),
        Row(#""answer","status":400,"reason":"PayloadEmpty""#, { _ in .invalidNotificationFormat }),
        Row(
            #""answer","status":404"#,
            { platform in
                switch platform {
                // Statuses that these services do not give to a dead handle.
                case .apns, .adm: .pnsInterfaceError
                case .fcmV1, .mpns: .expiredChannel
                default: .badChannel
                }
            },
            kept: { $0 == .apns || $0 == .adm }
        ),
        Row(
            #""answer","status":410"#,
            { $0 == .mpns || $0 == .adm ? .pnsInterfaceError : .expiredChannel },
            kept: { $0 == .mpns || $0 == .adm }
        ),
        Row(
            #""answer","status":413"#,
            { $0 == .fcmV1 ? .invalidNotificationFormat : .invalidNotificationSize }
        ),
        Row(#""answer","status":429,"retryAfter":0"#, { _ in .success }, retried: always),
        Row(#""answer","status":500"#, { _ in .success }, retried: always),
        Row(#""answer","status":503,"retryAfter":0"#, { _ in .success }, retried: always),
        Row(#""delay","milliseconds":50"#, { _ in .success }),
        Row(#""reset""#, { _ in .success }, retried: always),
        Row(#""close""#, { _ in .success }, retried: always),
        Row(#""dropAnswer""#, { _ in .success }, retried: always),
        Row(#""goaway""#, { _ in .success }),
        Row(#""streamLimit","streams":1"#, { _ in .success }),
    ]

    @Test("each fault once: outcome, retry, registration, and one push on the device", arguments: rows)
    func table(row: Row) async throws {
        var options = World.Options()
        options.retry.delayMin = .milliseconds(5)
        try await World.run(options) { world in
            let hub = try world.hub()
            for platform in Self.platforms {
                let device = try await world.device(platform.appName, platform)
                let handle = try await device.handle()
                try await TemplateTargets.register(handle, platform, tags: [platform.rawValue], at: hub)
                try await world.fault(
                    "{\"fault\":\(row.fault),\"platform\":\"\(platform.appName)\",\"count\":1}"
                )
                let id = try #require(
                    try await hub.send(.template(#"{"messageParam":"first"}"#), tags: platform.rawValue)
                )
                let outcome = row.outcome(platform)
                #expect(
                    try await world.outcome(id).outcomes == [platform: [outcome: 1]],
                    "\(platform.appName) \(row.fault)"
                )
                if outcome == .success { #expect(try await device.nextText() == "first") }
                let kept = try await hub.registrations(tag: try HubTag(platform.rawValue)).count
                #expect((kept == 1) == row.isKept(platform), "\(platform.appName) \(row.fault)")
                if kept == 1 {
                    // The connection, or the next one, goes on; nothing came twice.
                    _ = try await hub.send(.template(#"{"messageParam":"second"}"#), tags: platform.rawValue)
                    #expect(try await device.nextText() == "second")
                }
            }
            let retries = try world.server.counters["hub_retries_total"]
            let expected = Self.platforms.filter(row.isRetried).count
            #expect((retries > 0) == (expected > 0), "\(row.fault): \(retries) retries")
        }
    }

    @Test("one bad token of a batch costs the others nothing")
    func batch() async throws {
        try await World.run { world in
            let hub = try world.hub()
            var devices: [WorldDevice] = []
            for index in 1...5 {
                let device = try await world.device("phone\(index)", .apns)
                try await world.registerNative(device, .apns, tag: "all")
                devices.append(device)
            }
            let bad = try await devices[2].handle()
            try await world.fault(
                "{\"fault\":\"answer\",\"status\":410,\"platform\":\"apns\",\"handle\":\"\(bad)\"}"
            )
            let id = try #require(try await hub.send(.native(.apns, #"{"aps":{"alert":"hi"}}"#), tags: "all"))
            #expect(try await world.outcome(id).outcomes == [.apns: [.success: 4, .expiredChannel: 1]])
            for (index, device) in devices.enumerated() where index != 2 {
                #expect(try await device.nextText() == "hi")
            }
        }
    }

    @Test("an expired provider token is renewed and the push sent again, once")
    func expiredToken() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("phone", .apns)
            try await world.registerNative(device, .apns, tag: "me")
            let expired =
                #"{"fault":"answer","status":403,"reason":"ExpiredProviderToken","platform":"apns","count":"#
            try await world.fault(expired + "1}")
            let first = try #require(
                try await hub.send(.native(.apns, #"{"aps":{"alert":"1"}}"#), tags: "me")
            )
            #expect(try await world.outcome(first).outcomes == [.apns: [.success: 1]])
            #expect(try await device.nextText() == "1")
            try await world.fault(expired + "2}")
            let second = try #require(
                try await hub.send(.native(.apns, #"{"aps":{"alert":"2"}}"#), tags: "me")
            )
            #expect(try await world.outcome(second).outcomes == [.apns: [.invalidCredentials: 1]])
        }
    }

    @Test("the fault list: what is refused, what it counts, and that it is not there in production")
    func list() async throws {
        try await World.run { world in
            for bad in [
                "[]", "{}", #"{"fault":"answer"}"#, #"{"fault":"answer","status":200}"#,
                #"{"fault":"explode"}"#,
                #"{"fault":"hang","rate":0}"#, #"{"fault":"hang","rate":1.5}"#,
                #"{"fault":"hang","every":0}"#,
                #"{"fault":"hang","rate":0.5,"every":2}"#, #"{"fault":"hang","platform":"pigeon"}"#,
                #"{"fault":"hang","colour":1}"#, #"{"fault":"delay"}"#, "not JSON",
            ] {
                await #expect(throws: WorldFailure.self, "\(bad)") { try await world.fault(bad) }
            }
            let form = try await world.request(
                "POST",
                try world.gatewayURL + "/-/faults",
                fields: ["Content-Type": "text/plain"],
                body: Array(#"{"fault":"hang"}"#.utf8)
            )
            #expect(form.status.code == 400)
            let device = try await world.device("phone", .apns)
            try await world.registerNative(device, .apns, tag: "me")
            let number = try await world.fault(#"{"fault":"answer","status":500,"every":2,"count":1}"#)
            for index in 1...3 {
                let id = try await world.hub().send(
                    .native(.apns, "{\"aps\":{\"alert\":\"\(index)\"}}"),
                    tags: "me"
                )
                _ = try await world.outcome(try #require(id))
            }
            let answer = try await world.request("GET", try world.gatewayURL + "/-/faults")
            let entry = try JSONValue(parsing: answer.body)["faults"]?.arrayValue?.first
            #expect(
                entry?["id"]?.integerValue == number && entry?["applied"]?.integerValue == 1,
                "\(answer.text)"
            )
            let removal = try world.gatewayURL + "/-/faults/\(number)"
            #expect(try await world.request("DELETE", removal).status.code == 204)
            #expect(try await world.request("DELETE", removal).status.code == 404)
        }
    }
}

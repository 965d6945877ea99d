import HubClient
import TidingsConformance
import TidingsModels
import Testing

/// `?explain`: what a send would do.
@Suite("A send explained")
struct HubExplain {
    private func register(
        _ world: World,
        _ token: String,
        _ tags: String,
        template: String? = nil,
        variables: [String: String] = [:]
    ) async throws {
        _ = try await world.hub().create(
            RegistrationContent(
                handle: try PlatformHandle(token, platform: .apns),
                tags: try HubTag.list(tags),
                pushVariables: variables,
                template: template.map { RegistrationTemplate(name: "t-\(tags)", body: $0) }
            )
        )
    }

    @Test("who matches, how many fail which part, which other kinds match, repeats, and nothing is sent")
    func audience() async throws {
        try await World.run { world in
            for (token, tags) in [
                ("aa01", "news,sv"), ("aa02", "news,sv,beta"), ("aa03", "news"), ("aa04", "sv"),
                ("aa02", "news,sv,beta"),
            ] {
                try await register(world, token, tags)
            }
            try await register(world, "aa05", "news,sv", template: #"{"aps":{"alert":"$(m)"}}"#)
            let hub = try world.hub()
            let payload = HubNotification.native(.apns, #"{"aps":{"alert":"x"}}"#)
            let explanation = try await hub.explain(payload, tags: "news && (sv||xx) && ! beta")
            #expect(explanation.tags == "news && (sv || xx) && !beta")
            #expect(explanation.kindCount == 5 && explanation.matchCount == 1)
            #expect(
                explanation.parts.map(\.text) == ["news && (sv || xx) && !beta", "news", "sv || xx", "!beta"]
            )
            #expect(explanation.parts.map(\.failCount) == [4, 1, 1, 2])
            #expect(explanation.parts.map(\.failAloneCount) == [nil, 1, 1, 2])
            #expect(explanation.otherKinds == ["template": 1])
            #expect(explanation.units.count == 1 && explanation.units[0].targetCount == 1)
            #expect(explanation.units[0].payload == #"{"aps":{"alert":"x"}}"#)
            #expect(explanation.units[0].headers == [.init("apns-push-type", "alert")])

            let all = try await hub.explain(payload, tags: "")
            #expect(
                all.parts.isEmpty && all.matchCount == 5 && all.skippedCount == 1
                    && all.units[0].targetCount == 4
            )
            let none = try await hub.explain(
                .native(.wns, "<toast/>", headers: [.init("X-WNS-Type", "wns/toast")]),
                tags: "news"
            )
            #expect(
                none.kindCount == 0 && none.matchCount == 0 && none.otherKinds == ["apple": 4, "template": 1]
            )
            #expect(try world.server.counters["hub_notifications_accepted_total"] == 0)
        }
    }

    @Test("each payload that would be rendered, or why there is none")
    func payloads() async throws {
        try await World.run { world in
            let body = #"{"aps":{"alert":"{$(greeting) + ' ' + $(name)}"}}"#
            try await register(world, "aa01", "a", template: body, variables: ["name": "Po"])
            try await register(world, "aa02", "a", template: body, variables: ["name": "Lo"])
            try await register(world, "aa03", "a", template: body, variables: ["name": "Po"])
            let hub = try world.hub()
            let explanation = try await hub.explain(.template(#"{"greeting":"Hi"}"#), tags: "a")
            #expect(explanation.units.map(\.targetCount) == [2, 1])
            #expect(
                explanation.units.map(\.payload) == [
                    #"{"aps":{"alert":"Hi Po"}}"#, #"{"aps":{"alert":"Hi Lo"}}"#,
                ]
            )
            #expect(explanation.units.map(\.template) == ["t-a", "t-a"])
            let long = String(repeating: "x", count: 4096)
            let refused = try await hub.explain(.template(#"{"greeting":"\#(long)"}"#), tags: "a")
            #expect(
                refused.units.allSatisfy {
                    $0.payload == nil && $0.problem?.hasPrefix("InvalidNotificationSize") == true
                }
            )
            _ = try await hub.create(RegistrationContent(handle: try PlatformHandle("u-1", platform: .baidu)))
            let baidu = try await hub.explain(.native(.baidu, "{}"), tags: "")
            #expect(baidu.units.first?.problem?.hasPrefix("InvalidCredentials") == true)
            await #expect(throws: HubError.self) { try await hub.explain(.template("{}"), tags: "a &&") }
            await #expect(throws: HubError.self) {
                try await world.hub(full: false).explain(.template("{}"), tags: "a")
            }
        }
    }
}

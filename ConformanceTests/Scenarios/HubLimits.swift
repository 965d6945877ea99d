import HTTPMessages
import HubClient
import ProcessLifecycle
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Limits that an operator sets (protocol reference, section 10).
@Suite("Limits of a hub")
struct HubLimits {
    private func run(
        _ change: (inout ServerConfiguration) throws -> Void,
        _ body: (HubClient, WorldClock) async throws -> Void
    ) async throws {
        try await ScratchFolder.run { folder in
            var configuration = ServerConfiguration(statePath: folder)
            configuration.services = [.hub]
            configuration.useFreePorts()
            configuration.hubs = [.init(name: "h")]
            try change(&configuration)
            let clock = WorldClock(standingAt: Timestamp(seconds: 1_800_000_000))
            let server = try await TidingsServer.start(configuration, time: clock, log: .inMemory())
            do {
                let text = server.endpoints.connectionStrings["h"]?[AccessPolicy.fullName] ?? ""
                let client = HubClient(
                    try HubConnectionString(parsing: text),
                    hub: "h",
                    client: .init(),
                    time: clock
                )
                try await body(client, clock)
            } catch {
                await server.stop()
                throw error
            }
            await server.stop()
        }
    }

    private func throttled(_ body: () async throws -> Void) async throws -> HubError {
        do { try await body() } catch let error as HubError { return error }
        throw WorldFailure("nothing was throttled")
    }

    @Test("requests and sends over the rate are 429 with whole seconds to wait, and pass after them")
    func rates() async throws {
        try await run({ $0.requestLimits = .init(requestsPerSecond: 5, sendsPerSecond: 1) }) {
            client,
            clock in
            let notification = HubNotification.template("{}")
            for _ in 0..<2 { _ = try await client.send(notification, tags: "a") }
            let send = try await throttled { _ = try await client.send(notification, tags: "a") }
            #expect(
                send.code == .throttled && send.retryAfter == .seconds(1)
                    && send.message.contains("1 sends a second")
            )
            clock.advance(by: .seconds(1))
            _ = try await client.send(notification, tags: "a")
            for _ in 0..<11 { _ = try? await client.registrations() }
            let request = try await throttled { _ = try await client.registrations() }
            #expect(request.code == .throttled && request.message.contains("5 requests a second"))
            clock.advance(by: .seconds(1))
            _ = try await client.registrations()
        }
    }

    @Test(
        "a registration too many is 429 on every path; what is there can still be changed, and a deletion makes room"
    )
    func registrations() async throws {
        try await run({ $0.registrationCountMax = 2 }) { client, _ in
            func content(_ token: String) throws -> RegistrationContent {
                RegistrationContent(handle: try PlatformHandle(token, platform: .apns))
            }
            let first = try await client.create(try content("aa01"))
            try await client.put(Installation(id: "i", handle: try PlatformHandle("aa02", platform: .apns)))
            #expect(
                try await throttled { _ = try await client.create(try content("aa03")) }.code == .throttled
            )
            let more = Installation(
                id: "i",
                handle: try PlatformHandle("aa02", platform: .apns),
                templates: [InstallationTemplate(name: "t", body: "{}")]
            )
            #expect(try await throttled { try await client.put(more) }.code == .throttled)
            #expect(try await client.installation("i")?.templates == [])
            _ = try await client.put(first.id, try content("aa04"))
            #expect(try await client.delete(first.id))
            try await client.put(more)
            #expect(try await client.registrations().count == 2)
        }
    }

    @Test("the original's rule of 6 and 20 tags can be set")
    func tags() async throws {
        let change = { (configuration: inout ServerConfiguration) in
            (configuration.expressionLimits.tagCountMax, configuration.expressionLimits.tagCountMaxOnlyOr) = (
                6, 20
            )
        }
        try await run(change) { client, _ in
            func tags(_ count: Int, _ symbol: String) -> String {
                (0..<count).map { "t\($0)" }.joined(separator: symbol)
            }
            _ = try await client.send(.template("{}"), tags: tags(20, " || "))
            _ = try await client.send(.template("{}"), tags: tags(6, " && "))
            for expression in [tags(21, "||"), tags(7, "&&"), "!" + tags(7, "||")] {
                #expect(
                    try await throttled { _ = try await client.send(.template("{}"), tags: expression) }.code
                        == .badRequest
                )
            }
        }
    }
}

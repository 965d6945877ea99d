import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import Testing
import TidingsConformance
import TidingsModels

/// `gateway.apnsStrict`: what Apple holds against a connection (push services reference, sections 1.6, 1.9 and 1.10).
@Suite("APNs, strict")
struct StrictAPNs {
    private static var options: World.Options {
        var options = World.Options()
        options.configure = { $0.isAPNsStrict = true }
        return options
    }

    /// A provider with one connection that stays open, and tokens as it likes.
    private struct Provider {
        let world: World
        let client: HTTPClient
        let key: SigningKey
        let handle: String

        init(_ world: World, _ device: WorldDevice) async throws {
            self.world = world
            client = try world.httpClient()
            let file = try #require(try world.server.endpoints.apnsKeyFile)
            key = try SigningKey.privateKey(String(decoding: try Files.read(file) ?? [], as: UTF8.self))
            handle = try await device.handle()
        }

        /// - Parameter age: In seconds.
        func token(key keyID: String? = nil, team: String? = nil, age: Int64 = 0) throws -> String {
            let endpoints = try world.server.endpoints
            return try WebToken.sign(
                header: JSONObject(["alg": "ES256", "kid": .string(keyID ?? endpoints.apnsKeyID ?? "")]),
                claims: JSONObject([
                    "iss": .string(team ?? endpoints.apnsTeamID ?? ""),
                    "iat": .number(world.clock.now.seconds - age),
                ]),
                with: key
            )
        }

        /// `200`, or status and reason.
        func push(_ token: String, host: String? = nil) async throws -> (text: String, fields: HTTPFields) {
            var fields: HTTPFields = ["authorization": "bearer " + token, "apns-topic": "net.example.app"]
            fields["Host"] = host
            let answer = try await client.send(
                OutboundRequest(
                    "POST",
                    try #require(HTTPURL(try world.gatewayURL + "/3/device/" + handle)),
                    fields: fields,
                    body: Array(#"{"aps":{"alert":"x"}}"#.utf8)
                )
            )
            let reason = (try? JSONValue(parsing: answer.body))?["reason"]?.stringValue
            return (
                [String(answer.status.code), reason].compactMap(\.self).joined(separator: " "), answer.fields
            )
        }
    }

    @Test("another token within 20 minutes makes the connection useless until they are over")
    func tokenUpdates() async throws {
        try await World.run(Self.options) { world in
            let provider = try await Provider(world, try await world.device("phone", .apns))
            // What is not good is no token of this connection.
            #expect(try await provider.push(try provider.token(age: 4000)).text == "403 ExpiredProviderToken")
            let first = try provider.token(age: 20)
            #expect(try await provider.push(first).text == "200")
            #expect(try await provider.push(first).text == "200")
            let second = try provider.token(age: 10)
            for token in [second, first, second] {
                #expect(try await provider.push(token).text == "429 TooManyProviderTokenUpdates")
            }
            world.clock.advance(by: .seconds(20 * 60))
            #expect(try await provider.push(try provider.token()).text == "200")
            // Another connection is another matter.
            let other = try await Provider(world, try await world.device("other", .apns))
            #expect(try await other.push(try other.token(age: 30)).text == "200")
        }
    }

    @Test("one key and one team for each connection")
    func keys() async throws {
        try await World.run(Self.options) { world in
            let provider = try await Provider(world, try await world.device("phone", .apns))
            let strange = try provider.token(key: "ABCDEFGHIJ")
            #expect(try await provider.push(strange).text == "403 InvalidProviderToken")
            let own = try provider.token()
            #expect(try await provider.push(own).text == "200")
            #expect(try await provider.push(strange).text == "403 UnrelatedKeyIdInToken")
            #expect(try await provider.push(own).text == "200")
            // A second team spoils it for both.
            #expect(
                try await provider.push(try provider.token(team: "STRANGERS1")).text
                    == "403 InvalidProviderToken"
            )
            #expect(try await provider.push(own).text == "403 InvalidProviderToken")
        }
    }

    @Test("refusals that need no body cost no stream: the connection goes on, however many there were")
    func earlyRefusals() async throws {
        try await World.run(Self.options) { world in
            let provider = try await Provider(world, try await world.device("phone", .apns))
            let strange = try provider.token(key: "ABCDEFGHIJ")
            for _ in 0..<300 {
                #expect(try await provider.push(strange).text == "403 InvalidProviderToken")
            }
            #expect(try await provider.push(try provider.token()).text == "200")
        }
    }

    @Test("the sandbox's host name brings an id for the delivery log, and no other does")
    func uniqueID() async throws {
        try await World.run(Self.options) { world in
            let provider = try await Provider(world, try await world.device("phone", .apns))
            let token = try provider.token()
            #expect(try await provider.push(token).fields["apns-unique-id"] == nil)
            let answer = try await provider.push(token, host: "api.sandbox.push.apple.com")
            #expect(answer.text == "200" && answer.fields["apns-unique-id"]?.utf8.count == 36)
        }
    }

    @Test("a new connection has one stream until its provider is known; our sender loses nothing by it")
    func streams() async throws {
        try await World.run(Self.options) { world in
            let hub = try world.hub()
            var devices: [WorldDevice] = []
            for index in 1...12 {
                let device = try await world.device("phone\(index)", .apns)
                try await world.registerNative(device, .apns, tag: "all")
                devices.append(device)
            }
            for round in ["1", "2"] {
                let id = try #require(
                    try await hub.send(.native(.apns, "{\"aps\":{\"alert\":\"\(round)\"}}"), tags: "all")
                )
                #expect(try await world.outcome(id).outcomes == [.apns: [.success: 12]])
                for device in devices { #expect(try await device.nextText() == round) }
            }
        }
    }
}

import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// Installations on the wire (protocol reference, section 4).
@Suite("The hub's installations")
struct HubInstallations {
    private func put(
        _ world: World,
        _ id: String,
        _ json: String,
        full: Bool = false
    ) async throws -> HTTPAnswer {
        try await world.signed(
            "PUT",
            "/tidings/installations/\(id)?api-version=2020-06",
            body: json,
            full: full
        )
    }

    private func patch(_ world: World, _ id: String, _ json: String) async throws -> HTTPAnswer {
        try await world.signed("PATCH", "/tidings/installations/\(id)", body: json, full: false)
    }

    private func get(_ world: World, _ id: String) async throws -> String {
        let answer = try await world.signed("GET", "/tidings/installations/\(id)", full: false)
        #expect(answer.status.code == 200)
        #expect(answer.fields["Content-Type"] == "application/json; charset=utf-8")
        return answer.text
    }

    private let phone =
        #"{"installationId":"i-1","platform":"apns","pushChannel":"ab12","userId":"po@x","tags":["news","lang:sv"],"#
        + #""pushVariables":{"nick":"Po"},"templates":{"Head Line":{"body":"{\"aps\":{\"alert\":\"$(headline)\"}}","tags":["breaking"],"expiry":"0","#
        + #""headers":{"apns-push-type":"alert"}}}}"#

    @Test(
        "PUT, GET, DELETE with the statuses and members of the original; the registrations carry the tags of section 4.6"
    )
    func lifecycle() async throws {
        try await World.run { world in
            let made = try await put(world, "i-1", phone)
            #expect(made.status.code == 200 && made.body.isEmpty)
            #expect(
                try await get(world, "i-1")
                    == #"{"installationId":"i-1","pushChannel":"AB12","pushChannelExpired":false,"platform":"apns","#
                    + #""expirationTime":"9999-12-31T23:59:59.9999999Z","userId":"po@x","tags":["news","lang:sv"],"pushVariables":{"nick":"Po"},"#
                    + #""templates":{"Head Line":{"body":"{\"aps\":{\"alert\":\"$(headline)\"}}","headers":{"apns-push-type":"alert"},"#
                    + #""expiry":"0","tags":["breaking","Head Line"]}}}"#
            )
            let hub = try world.hub()
            let rows = try await hub.registrations(handle: "ab12")
            #expect(
                rows.map { $0.content.tags.map(\.text).joined(separator: ",") } == [
                    "$InstallationId:{i-1},$UserId:{po@x},news,lang:sv",
                    "$InstallationId:{i-1},$UserId:{po@x},news,lang:sv,breaking,Head Line",
                ]
            )
            #expect(rows.map { $0.content.template?.name } == [nil, "Head Line"])
            for tag in ["$UserId:{po@x}", "$InstallationId:{i-1}"] {
                let listed = try await world.signed(
                    "GET",
                    "/tidings/tags/\(PercentEncoding.encode(tag))/registrations"
                )
                #expect(try RegistrationXML.readFeed(listed.body).count == 2, "\(tag)")
            }

            // What is read can be written back, and changes nothing.
            #expect(try await put(world, "i-1", try await get(world, "i-1")).status.code == 200)
            #expect(try await hub.registrations(handle: "ab12") == rows)
            let system =
                #"{"platform":"apns","pushChannel":"ab12","userId":"po@x","tags":["$UserId:{po@x}","$InstallationId:{i-1}"]}"#
            #expect(try await put(world, "i-1", system).status.code == 200)
            #expect(try await hub.registrations(handle: "ab12").count == 1)

            for id in ["i-1", "never"] {
                let gone = try await world.signed("DELETE", "/tidings/installations/\(id)", full: false)
                #expect(gone.status.code == 204 && gone.body.isEmpty)
            }
            let missing = try await world.signed("GET", "/tidings/installations/i-1", full: false)
            #expect(
                missing.status.code == 404
                    && missing.text.contains("<Detail>Installation not found.TrackingId:")
            )
            #expect(try await hub.registrations(handle: "ab12").isEmpty)
        }
    }

    @Test("sends reach an installation by its id, its user, a tag and a template's name")
    func sends() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            let handle = try await device.handle()
            let json =
                #"{"platform":"apns","pushChannel":"\#(handle)","userId":"po","tags":["news"],"#
                + #""templates":{"head":{"body":"{\"aps\":{\"alert\":\"$(headline)\"}}"}}}"#
            #expect(try await put(world, "i-1", json).status.code == 200)
            let hub = try world.hub()
            let payload = #"{"aps":{"alert":"one"}}"#
            for tags in ["$InstallationId:{i-1}", "$UserId:{po}", "news && $UserId:{PO}"] {
                let id = try #require(try await hub.send(.native(.apns, payload), tags: tags))
                #expect(try await world.outcome(id).outcomes == [.apns: [.success: 1]], "\(tags)")
            }
            for tags in ["head", "news && $InstallationId:{i-1}"] {
                let id = try #require(try await hub.send(.template(#"{"headline":"two"}"#), tags: tags))
                #expect(try await world.outcome(id).outcomes == [.apns: [.success: 1]], "\(tags)")
            }
        }
    }

    @Test("PATCH: every path and operation; a wrong one changes nothing")
    func patches() async throws {
        try await World.run { world in
            #expect(try await put(world, "i-1", phone).status.code == 200)
            let steps: [(String, String)] = [
                (
                    #"[{"op":"add","path":"/tags","value":"plum"},{"op":"remove","path":"/tags/news"}]"#,
                    #""tags":["lang:sv","plum"]"#
                ),
                (#"[{"op":"replace","path":"/tags","value":"[\"a\",\"b\"]"}]"#, #""tags":["a","b"]"#),
                (
                    #"[{"op":"Add","path":"/tags/c"},{"op":"add","path":"/tags","value":["d"]}]"#,
                    #""tags":["a","b","c","d"]"#
                ),
                (#"[{"op":"replace","path":"/pushChannel","value":"cd34"}]"#, #""pushChannel":"CD34""#),
                (#"[{"op":"replace","path":"/userId","value":"new"}]"#, #""userId":"new""#),
                (
                    #"[{"op":"add","path":"/pushVariables/x","value":"y"}]"#,
                    #""pushVariables":{"nick":"Po","x":"y"}"#
                ),
                (
                    #"[{"op":"add","path":"/templates/t~1u","value":"{\"body\":\"{}\",\"tags\":[\"z\"]}"}]"#,
                    #""t/u":{"body":"{}","tags":["z","t/u"]}"#
                ),
                (
                    #"[{"op":"replace","path":"/templates/t~1u/body","value":"{\"a\":\"$(b)\"}"}]"#,
                    #""body":"{\"a\":\"$(b)\"}""#
                ),
                (#"[{"op":"add","path":"/templates/t~1u/tags","value":"y"}]"#, #""tags":["z","y","t/u"]"#),
                (
                    #"[{"op":"add","path":"/templates/t~1u/headers/apns-priority","value":"5"}]"#,
                    #""headers":{"apns-priority":"5"}"#
                ),
                (
                    #"[{"op":"add","path":"/expirationTime","value":"2031-01-02T10:20+0000"}]"#,
                    #""expirationTime":"2031-01-02T10:20:00.000Z""#
                ),
            ]
            for (operations, expected) in steps {
                let answer = try await patch(world, "i-1", operations)
                #expect(answer.status.code == 200 && answer.body.isEmpty, "\(operations): \(answer.text)")
                let text = try await get(world, "i-1")
                #expect(text.contains(expected), "\(operations): \(text)")
            }
            let hub = try world.hub()
            #expect(try await hub.registrations(handle: "CD34").count == 3)
            let clear =
                #"[{"op":"remove","path":"/tags"},{"op":"remove","path":"/templates"},{"op":"remove","path":"/userId"},"#
                + #"{"op":"remove","path":"/pushVariables"},{"op":"remove","path":"/expirationTime"}]"#
            #expect(try await patch(world, "i-1", clear).status.code == 200)
            let plain =
                #"{"installationId":"i-1","pushChannel":"CD34","pushChannelExpired":false,"platform":"apns","#
                + #""expirationTime":"9999-12-31T23:59:59.9999999Z"}"#
            #expect(try await get(world, "i-1") == plain)

            let bad: [(String, String)] = [
                ("{}", "array"), ("[", "JSON"), (#"[{"op":"move","path":"/tags"}]"#, "Operation 0"),
                (#"[{"op":"add","path":"tags","value":"x"}]"#, "path"),
                (
                    #"[{"op":"add","path":"/tags","value":"ok"},{"op":"add","path":"/tags","value":"a,b"}]"#,
                    "a,b"
                ),
                (#"[{"op":"remove","path":"/pushChannel"}]"#, "/pushChannel"),
                (#"[{"op":"replace","path":"/pushChannel","value":"xyz"}]"#, "hexadecimal"),
                (#"[{"op":"replace","path":"/platform","value":"wns"}]"#, "/platform"),
                (#"[{"op":"add","path":"/templates/t","value":"{}"}]"#, "body"),
                (#"[{"op":"add","path":"/templates/t","value":{"body":"{\"a\":\"$(b\"}"}}]"#, "templates/t"),
                (#"[{"op":"replace","path":"/templates/none/body","value":"{}"}]"#, "none"),
                (#"[{"op":"add","path":"/userId","value":"a b"}]"#, "userId"),
            ]
            for (operations, reason) in bad {
                let answer = try await patch(world, "i-1", operations)
                #expect(
                    answer.status.code == 400 && answer.text.contains(reason),
                    "\(operations): \(answer.text)"
                )
            }
            #expect(try await get(world, "i-1") == plain)
            #expect(
                try await patch(world, "never", #"[{"op":"add","path":"/tags","value":"x"}]"#).status.code
                    == 404
            )
        }
    }

    @Test("refusals name the member and what is allowed; unknown members and nulls are taken")
    func refusals() async throws {
        try await World.run { world in
            let bad: [(String, String)] = [
                ("", "JSON"), ("[]", "object"), (#"{"platform":"apns"}"#, "pushChannel"),
                (#"{"pushChannel":"ab12"}"#, "platform"),
                (#"{"platform":"symbian","pushChannel":"x"}"#, "symbian"),
                (#"{"platform":"apns","pushChannel":"ab1"}"#, "hexadecimal"),
                (#"{"platform":"apns","pushChannel":{"endpoint":"x"}}"#, "string"),
                (#"{"platform":"apns","pushChannel":"ab12","installationId":"other"}"#, "other"),
                (#"{"platform":"apns","pushChannel":"ab12","tags":["a b"]}"#, "a b"),
                (#"{"platform":"apns","pushChannel":"ab12","tags":["$UserId:{po}"]}"#, "$UserId"),
                (#"{"platform":"apns","pushChannel":"ab12","tags":"a"}"#, "'tags'"),
                (#"{"platform":"apns","pushChannel":"ab12","expirationTime":"soon"}"#, "soon"),
                (
                    #"{"platform":"apns","pushChannel":"ab12","templates":{"t":{"body":"<a/>"}}}"#,
                    "templates/t"
                ),
                (
                    #"{"platform":"wns","pushChannel":"https://x.notify.windows.com/a","templates":{"t":{"body":"<toast/>"}}}"#,
                    "X-WNS-Type"
                ),
                (#"{"platform":"apns","pushChannel":"ab12","secondaryTiles":{"t":{}}}"#, "wns"),
                (#"{"platform":"browser","pushChannel":"ab12"}"#, "endpoint"),
                (
                    #"{"platform":"browser","pushChannel":{"endpoint":"https://p.example/1","auth":"x"}}"#,
                    "p256dh"
                ),
                (#"{"platform":"baidu","pushChannel":"user"}"#, "userId"),
            ]
            for (json, reason) in bad {
                let answer = try await put(world, "i-1", json)
                #expect(answer.status.code == 400 && answer.text.contains(reason), "\(json): \(answer.text)")
            }
            let nulls =
                "{\n  \"installationId\" : \"i-1\", \"userID\": null, \"pushChannelExpired\": null, \"expirationTime\": null, \"tags\": null,"
                + "\"platform\": \"FCMV1\", \"pushChannel\": \"t:1\", \"templates\": {\"t\": {\"name\":\"t\",\"body\":\"{\\\"message\\\":{}}\"}}, \"x\": 1}"
            #expect(try await put(world, "i-1", nulls).status.code == 200)
            #expect(try await get(world, "i-1").contains(#""platform":"fcmV1""#))
        }
    }

    @Test(
        "a browser's channel comes back as it was given, an object or text; tiles of Windows have rows of their own"
    )
    func channels() async throws {
        try await World.run { world in
            let keys = #""endpoint":"https://p.example/1","p256dh":"BPk","auth":"aaa""#
            #expect(
                try await put(world, "b-1", #"{"platform":"browser","pushChannel":{\#(keys)}}"#).status.code
                    == 200
            )
            #expect(try await get(world, "b-1").contains("\"pushChannel\":{\(keys)}"))
            let text = JSONValue.string("{\(keys)}").text
            #expect(
                try await put(world, "b-2", #"{"platform":"browser","pushChannel":\#(text)}"#).status.code
                    == 200
            )
            #expect(try await get(world, "b-2").contains("\"pushChannel\":\(text)"))
            let hub = try world.hub()
            #expect(try await hub.registrations(handle: "https://p.example/1").count == 2)

            let tiles =
                #"{"platform":"wns","pushChannel":"https://x.notify.windows.com/a","tags":["all"],"secondaryTiles":{"tile-plum":{"#
                + #""pushChannel":"https://x.notify.windows.com/b","tags":["plum"],"templates":{"t":{"body":"<toast a=\"$(b)\"/>","#
                + #""headers":{"X-WNS-Type":"wns/toast"}}}}}}"#
            #expect(try await put(world, "w-1", tiles).status.code == 200)
            let rows = try await hub.registrations(handle: "https://x.notify.windows.com/b")
            #expect(rows.map(\.content.secondaryTileName) == ["tile-plum", "tile-plum"])
            #expect(
                rows.map { $0.content.tags.map(\.text) } == [
                    ["$InstallationId:{w-1}", "plum"], ["$InstallationId:{w-1}", "plum", "t"],
                ]
            )
            let change =
                #"[{"op":"add","path":"/secondaryTiles/tile-plum/tags","value":"pear"},{"op":"remove","path":"/secondaryTiles/tile-plum/templates/t"}]"#
            #expect(try await patch(world, "w-1", change).status.code == 200)
            #expect(
                try await hub.registrations(handle: "https://x.notify.windows.com/b").map {
                    $0.content.tags.map(\.text)
                } == [
                    ["$InstallationId:{w-1}", "plum", "pear"]
                ]
            )
        }
    }

    @Test(
        "a derived registration is deleted alone, written back as it was read, and changed only through its installation"
    )
    func derived() async throws {
        try await World.run { world in
            #expect(try await put(world, "i-1", phone).status.code == 200)
            let hub = try world.hub()
            let rows = try await hub.registrations(handle: "ab12")
            var native = try #require(rows.first)
            #expect(try await hub.put(native.id, native.content) == native)
            native.content.tags.append(try HubTag("more"))
            let error = await #expect(throws: HubError.self) { try await hub.put(native.id, native.content) }
            #expect(error?.code == .badRequest)
            native.content.tags = []
            await #expect(throws: HubError.self) { try await hub.put(native.id, native.content) }
            #expect(try await hub.delete(native.id))
            #expect(try await hub.registrations(handle: "ab12").map(\.id) == rows.dropFirst().map(\.id))
            #expect(try await get(world, "i-1").contains("Head Line"))
        }
    }

    @Test(
        "an installation expires with its registrations; a dead channel is noted, sent to no more, and revived by a new PUT"
    )
    func ends() async throws {
        try await World.run { world in
            let soon = (world.clock.now + .seconds(60)).description
            let json = #"{"platform":"apns","pushChannel":"ab12","tags":["t"],"expirationTime":"\#(soon)"}"#
            #expect(try await put(world, "e-1", json).status.code == 200)
            #expect(try await get(world, "e-1").contains(soon))
            let hub = try world.hub()
            #expect(try await hub.registrations(handle: "ab12").first?.expires == Timestamp(parsing: soon))
            world.clock.advance(by: .seconds(61))
            #expect(try await world.signed("GET", "/tidings/installations/e-1").status.code == 404)
            #expect(try await hub.registrations(handle: "ab12").isEmpty)

            // A handle that our gateway never issued is dead for it.
            #expect(
                try await put(
                    world,
                    "d-1",
                    #"{"platform":"apns","pushChannel":"ab13","tags":["dead"],"templates":{"t":{"body":"{}"}}}"#
                ).status.code == 200
            )
            let id = try #require(try await hub.send(.native(.apns, #"{"aps":{"alert":"x"}}"#), tags: "dead"))
            #expect(try await world.outcome(id).outcomes[.apns]?.values.reduce(0, +) == 1)
            #expect(try await get(world, "d-1").contains(#""pushChannelExpired":true"#))
            #expect(try await hub.registrations(handle: "ab13").isEmpty)
            #expect(
                try await patch(world, "d-1", #"[{"op":"add","path":"/tags","value":"x"}]"#).status.code
                    == 200
            )
            #expect(try await hub.registrations(handle: "ab13").isEmpty)
            #expect(
                try await patch(world, "d-1", #"[{"op":"replace","path":"/pushChannel","value":"ab14"}]"#)
                    .status.code == 200
            )
            #expect(try await get(world, "d-1").contains(#""pushChannelExpired":false"#))
            #expect(try await hub.registrations(handle: "ab14").count == 2)
        }
    }
}

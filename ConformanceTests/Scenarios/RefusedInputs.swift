import HTTPMessages
import JSONBytes
import Testing
import TidingsConformance
import TidingsModels

/// Inputs that a schema-driven client found, each as a kind: what is refused, with what, and what goes on working.
@Suite("Refused inputs")
struct RefusedInputs {
    @Test("every 405 names the methods that are allowed")
    func allow() async throws {
        try await World.run { world in
            let (backend, hub, gateway) = (try world.backendURL, try world.hubURL, try world.gatewayURL)
            let user: HTTPFields = ["Authorization": basic("alice")]
            let key: HTTPFields = ["Authorization": try world.signature("/tidings")]
            let rows: [(String, String, HTTPFields, String)] = [
                ("DELETE", backend + "/", [:], "GET, HEAD"), ("PUT", backend + "/api/register", user, "POST"),
                ("POST", backend + "/api/register/1-2-3", user, "PUT, DELETE"),
                ("PUT", backend + "/api/notifications", user, "POST"),
                ("DELETE", backend + "/api/notifications/7", user, "GET, HEAD"),
                ("PUT", hub + "/tidings/messages", key, "POST"),
                ("PATCH", hub + "/tidings/registrations", key, "GET, POST"),
                ("DELETE", hub + "/tidings/jobs", key, "GET, POST"),
                ("POST", hub + "/tidings/installations/x", key, "GET, PUT, PATCH, DELETE"),
                ("DELETE", gateway + "/3/device/ab", [:], "POST"), ("GET", gateway + "/token", [:], "POST"),
                ("GET", gateway + "/wns/?token=x", [:], "POST, DELETE"),
                ("PUT", gateway + "/v1/projects/p/messages:send", [:], "POST"),
                ("PUT", gateway + "/wpush/v1/x", [:], "GET, POST"), ("GET", gateway + "/m/x", [:], "DELETE"),
                ("POST", hub + "/-/health", [:], "GET, HEAD"),
            ]
            for (method, url, fields, allowed) in rows {
                let answer = try await world.request(method, url, fields: fields, body: [])
                #expect(answer.status.code == 405, "\(method) \(url): \(answer.text)")
                #expect(answer.fields["Allow"] == allowed, "\(method) \(url)")
            }
        }
    }

    @Test(
        "a moment that cannot be written again is refused, and what is there stays readable",
        arguments: ["0000-01-01T00:00:00+14:00", "0000-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01"]
    )
    func moments(text: String) async throws {
        #expect(Timestamp(parsing: text) == nil)
        try await World.run { world in
            func put(_ time: String) async throws -> HTTPAnswer {
                try await world.signed(
                    "PUT",
                    "/tidings/installations/x",
                    fields: ["Content-Type": "application/json"],
                    body: "{\"platform\":\"apns\",\"pushChannel\":\"AB12\",\"expirationTime\":\"\(time)\"}"
                )
            }
            #expect(try await put("2035-01-01T00:00:00Z").status.code == 200)
            let refused = try await put(text)
            #expect(refused.status.code == 400 && refused.text.contains("expirationTime"), "\(refused.text)")
            #expect(try await world.signed("GET", "/tidings/installations/x").status.code == 200)
        }
    }

    @Test("the app back end: members of a wrong type, bytes that are no blank, handles too long")
    func backend() async throws {
        try await World.run { world in
            func post(_ path: String, _ body: [UInt8]) async throws -> HTTPAnswer {
                try await world.backend("POST", path, as: "alice", body: body)
            }
            for json in [
                #"{"payload":"x","to":{}}"#, #"{"payload":"x","to":5}"#, #"{"payload":"x","to":false}"#,
                #"{"payload":5,"richType":"url","content":"x"}"#,
                #"{"richType":"url","content":"x","message":5}"#,
                #"{"richType":["url"],"content":"x"}"#, #"{"richType":"url","content":7}"#,
            ] {
                let answer = try await post("/api/notifications", Array(json.utf8))
                #expect(answer.status.code == 400, "\(json): \(answer.text)")
                #expect(answer.text.contains("must be a string"), "\(json): \(answer.text)")
            }
            // Null is absent, and blanks are nothing.
            let secret = Array(#"{"payload":"x","to":null,"message":null}"#.utf8)
            #expect(try await post("/api/notifications", secret).status.code == 200)
            #expect(try await post("/api/notifications", Array(" \t\r\n".utf8)).status.code == 200)
            for byte: UInt8 in [0, 1, 2, 0x0B, 0x0C, 0x1F] {
                #expect(try await post("/api/notifications", [byte]).status.code == 400, "byte \(byte)")
                #expect(try await post("/api/register", [byte]).status.code == 400, "byte \(byte)")
            }
            let longest = String(repeating: "A", count: 2048)
            #expect(try await post("/api/register?handle=\(longest)", []).status.code == 200)
            let tooLong = try await post("/api/register?handle=\(longest)B", [])
            #expect(tooLong.status.code == 400 && tooLong.text.contains("2049"), "\(tooLong.text)")
        }
    }

    @Test("a combining mark behind a delimiter hides nothing")
    func delimiters() async throws {
        try await World.run { world in
            let json: HTTPFields = ["Content-Type": "application/json"]
            let put = try await world.signed(
                "PUT",
                "/tidings/installations/x",
                fields: json,
                body: #"{"platform":"apns","pushChannel":"AB12"}"#
            )
            #expect(put.status.code == 200)
            let patch = try await world.signed(
                "PATCH",
                "/tidings/installations/x",
                fields: json,
                body: #"[{"op":"add","path":"/pushVariables/\u0301x","value":"y"}]"#
            )
            #expect(patch.status.code == 200, "\(patch.text)")
            let got = try JSONValue(parsing: try await world.signed("GET", "/tidings/installations/x").body)
            #expect(got["pushVariables"]?["\u{301}x"]?.stringValue == "y")
            // The handle goes into a filter at the hub, between quotes.
            for handle in ["%CC%81abc", "a'%CC%81", "'%CC%81%20or%20'"] {
                let answer = try await world.backend("POST", "/api/register?handle=\(handle)", as: "alice")
                #expect(answer.status.code == 200, "\(handle): \(answer.text)")
            }
            let template = try await world.signed(
                "PUT",
                "/tidings/installations/x",
                fields: json,
                body:
                    #"{"platform":"apns","pushChannel":"AB12","templates":{"t":{"body":"{\"aps\":{\"alert\":\"{'\u0301'}\"}}"}}}"#
            )
            #expect(template.status.code == 200, "\(template.text)")
        }
    }
}

import BackendClient
import DeviceDaemon
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Rows 14 to 29: sending, stored items, the daemon's reports.
extension DefectTable {
    @Test("row 14: a platform without credentials has its own outcome and stops no other")
    func withoutCredentials() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.subscribe(["World"])
            let phone = try PlatformHandle("u1-c1", platform: .baidu)
            _ = try await world.hub().create(
                RegistrationContent(
                    handle: phone,
                    tags: [try HubTag("World")],
                    template: RegistrationTemplate(
                        body: #"{"title":"News","description":"$(messageParam)"}"#
                    )
                )
            )
            let id = try #require(
                try await world.hub().send(.template(#"{"messageParam":"news"}"#), tags: "World")
            )
            #expect(try await device.nextText() == "news")
            #expect(
                try await world.outcome(id).outcomes == [
                    .apns: [.success: 1], .baidu: [.invalidCredentials: 1],
                ]
            )
        }
    }

    @Test(
        "rows 15 to 17: ids of concurrent pushes are distinct, positive, 31 bits, not sequential, and each its owner's"
    )
    func itemIDs() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<30 {
                    group.addTask { try await world.app("alice").sendSecure("secret \(index)") }
                }
                try await group.waitForAll()
            }
            var ids = Set<Int>()
            var texts = Set<String>()
            for _ in 0..<30 {
                let event = try await device.nextPush()
                ids.insert(event.fields["secureId"]?.integerValue ?? 0)
                texts.insert(event["text"] ?? "")
            }
            #expect(ids.count == 30)
            #expect(ids.allSatisfy { (1...Int(Int32.max)).contains($0) })
            #expect(!zip(ids.sorted(), ids.sorted().dropFirst()).contains { $0 + 1 == $1 })
            #expect(texts == Set((0..<30).map { "secret \($0)" }))
            for id in ids.prefix(3) {
                #expect(
                    try await world.backend("GET", "/api/notifications/\(id)", as: "bob").status.code == 404
                )
            }
        }
    }

    @Test(
        "rows 18 and 19: a GET makes nothing, and an unknown id is 404",
        arguments: ["1", "0", "-5", "abc", "99999999999999", "1.5"]
    )
    func unknownItems(id: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            #expect(
                try await world.backend("GET", "/api/notifications/\(id)", as: "alice").status.code == 404
            )
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "marker")
            #expect(try await device.nextText() == "From bob: marker")
        }
    }

    @Test("row 20: an item expires; Read survives a restart")
    func expiry() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            try await world.app("alice").sendSecure("short-lived")
            let id = try #require(try await device.nextPush().fields["secureId"]?.integerValue)
            await device.stop()
            await world.stopServer()
            try await world.startServer()
            let again = try await world.backend("GET", "/api/notifications/\(id)", as: "alice")
            #expect(again.text.contains(#""Read":true"#))
            world.clock.advance(by: .seconds(31 * 86400))
            #expect(
                try await world.backend("GET", "/api/notifications/\(id)", as: "alice").status.code == 404
            )
        }
    }

    // MARK: Rows 21, 22, 24, 25, 28, 29

    @Test("rows 21 and 29: the daemon reports success and failure as they are, with status and body")
    func trueReports() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            #expect(try await device.nextEvent("registered")["user"] == "alice")
            await #expect(throws: BackendError.self) { try await device.login("alice", password: "wrong") }
            let failed = try await device.nextEvent("registration_failed")
            #expect(failed.fields["status"] == 403)
            #expect(failed["domain"] == "Registration")
            #expect(try await device.status()["user"]?.stringValue == "alice")
            // The failed login may have changed the back end: the old one is registered anew.
            #expect(try await device.nextEvent("registered")["user"] == "alice")
            let results = try await device.daemon.send(to: "a||b", platforms: ["apns"], text: "x")
            #expect(results.first?.status == 400)
            #expect(results.first?.reason.contains("user name") == true)
        }
    }

    @Test("row 22: the description of a data object is refused with the reason; old descriptions are cleaned")
    func descriptions() async throws {
        try await World.run { world in
            let modern = "{LENGTH=32,BYTES=0X01080F16...CCD3DA}"
            let post = try await world.backend(
                "POST",
                "/api/register?handle=\(PercentEncoding.encode(modern))",
                as: "alice"
            )
            #expect(post.status.code == 400)
            #expect(post.text.contains("iOS 13"))
            let id = try await world.backend("POST", "/api/register", as: "alice").text.dropFirst().dropLast()
            let old =
                "<" + stride(from: 0, to: 64, by: 8).map { _ in "ab12cd34" }.joined(separator: " ") + ">"
            let put = try await world.backend(
                "PUT",
                "/api/register/\(id)",
                as: "alice",
                json: "{\"Platform\":\"apns\",\"Handle\":\"\(old)\"}"
            )
            #expect(put.status.code == 200)
            let registrationID = try #require(RegistrationID(String(id)))
            let registration = try #require(try await world.hub().registration(registrationID))
            #expect(registration.content.handle.text == String(repeating: "AB12CD34", count: 8))
            for handle in ["xyz", "ab1", ""] {
                let answer = try await world.backend(
                    "PUT",
                    "/api/register/\(id)",
                    as: "alice",
                    json: "{\"Platform\":\"apns\",\"Handle\":\"\(handle)\"}"
                )
                #expect(answer.status.code == 400, "\(handle)")
            }
        }
    }

    @Test("rows 24 and 25: 201 is success to our client; a Listen string cannot send")
    func sendRights() async throws {
        try await World.run { world in
            let id = try await world.hub().send(.template(#"{"messageParam":"x"}"#), tags: "World")
            #expect(id != nil)
            let refusal = await #expect(throws: HubError.self) {
                try await world.hub(full: false).send(.template(#"{"messageParam":"x"}"#), tags: "World")
            }
            #expect(refusal?.code == .unauthorized)
            #expect(refusal?.message.contains("Send") == true)
        }
    }

    @Test("row 28: silent pushes say so, also when the sender does not")
    func silentPushType() async throws {
        try await World.run { world in
            let device = try await world.device("phone")
            try await device.login("alice")
            _ = try await world.hub().send(
                .native(.apns, #"{"aps":{"content-available":1,"sound":""},"inAppMessage":"hello"}"#),
                tags: "username:alice"
            )
            #expect(try await device.nextText() == "hello")
            let received = try #require(try await device.daemon.inboxEntries().first).notification
            #expect(received.header("apns-push-type") == "background")
            #expect(received.header("apns-priority") == "5")
        }
    }
}

import DeviceDaemon
import HTTPMessages
import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// Tutorial 04: a secret that must not pass through the push service.
///
/// Only an id travels; the device fetches the text with its own credentials.
@Suite("04 Secure push")
struct SecurePush {
    private static let secret = "The vault opens at 04:30, ask for Ωmega"

    @Test("the secret reaches the device and no hop before", arguments: [Platform.apns, .fcmV1, .wns])
    func onlyTheIDTravels(platform: Platform) async throws {
        try await World.run { world in
            let device = try await world.device("phone", platform)
            try await device.login("alice")

            let answer = try await world.backend(
                "POST",
                "/api/notifications",
                as: "bob",
                json: JSONValue.object(["payload": .string(Self.secret), "to": "alice"]).text
            )
            #expect(answer.status.code == 200)
            #expect(answer.body.isEmpty)

            let event = try await device.nextPush()
            #expect(event.name == "notification")
            #expect(event["kind"] == "secure")
            #expect(event["text"] == Self.secret)

            // The hub's copy of what it sent, what the device received, and every log line.
            for part in (answer.fields["Tidings-Notification-Id"] ?? "").split(separator: ",") {
                let id = try #require(part.split(separator: "=").last.flatMap { NotificationID(String($0)) })
                #expect(!contains(try await world.outcome(id).notification.body))
            }
            for entry in try await device.daemon.inboxEntries() {
                #expect(!contains(entry.notification.data))
            }
            #expect(!contains(world.logBytes))
        }
    }

    private func contains(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains("vault") || text.contains("Ωmega")
    }

    @Test("the pushes are silent ones: background, priority 5, no sound")
    func silent() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await world.app("alice").sendSecure("x")
            _ = try await device.nextPush()
            let received = try #require(try await device.daemon.inboxEntries().first).notification
            #expect(received.header("apns-push-type") == "background")
            #expect(received.header("apns-priority") == "5")
            let payload = try JSONValue(parsing: received.data)
            #expect(payload["aps"] == .object(["content-available": 1]))
            #expect(payload["secureId"]?.stringValue.flatMap { Int32($0) } != nil)
        }
    }

    @Test("without credentials a notice asks to log in; after the login the text is shown, once")
    func noCredentials() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            // The app forgets its token; the registration stays.
            try await device.daemon.forgetLoginForTests()
            try await world.app("alice").sendSecure(Self.secret)
            let notice = try await device.nextPush()
            #expect(notice.name == "notice")
            #expect(notice["text"]?.contains("Log in") == true)

            try await device.login("alice")
            #expect(try await device.nextText() == Self.secret)
            try await device.login("alice")
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "marker")
            #expect(try await device.nextText() == "From bob: marker")
        }
    }

    @Test("rejected credentials are the same case, not an error loop")
    func rejectedCredentials() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await device.daemon.replacePasswordForTests("changed")
            try await world.app("alice").sendSecure(Self.secret)
            let notice = try await device.nextPush()
            #expect(notice.name == "notice")
            #expect(notice.fields["status"] == 403)
        }
    }

    @Test("the item is its owner's alone, and Read is set at the first read")
    func ownership() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await device.daemon.forgetLoginForTests()
            try await world.app("alice").sendSecure(Self.secret)
            let id = try #require(try await device.nextPush().fields["itemId"]?.integerValue)
            #expect(id > 0 && id <= Int(Int32.max))

            #expect(
                try await world.backend("GET", "/api/notifications/\(id)", as: "mallory").status.code == 404
            )
            #expect(
                try await world.backend("GET", "/api/notifications/\(id % 1000)", as: "alice").status.code
                    == 404
            )
            let first = try await world.backend("GET", "/api/notifications/\(id)", as: "alice")
            #expect(first.text == #"{"Id":\#(id),"Payload":"\#(Self.secret)","Read":false}"#)
            let second = try await world.backend("GET", "/api/notifications/\(id)", as: "alice")
            #expect(second.text.hasSuffix(#""Read":true}"#))
        }
    }

    @Test("the tutorials' bare POST sends the sample")
    func sample() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            let answer = try await world.backend("POST", "/api/notifications", as: "alice")
            #expect(answer.status.code == 200)
            #expect(try await device.nextText() == "Secure confirmation.")
        }
    }
}

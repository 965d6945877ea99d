import Foundation
import HTTPMessages
import HubClient
import JSONBytes
import TidingsConformance
import Testing

import TidingsModels

/// Tutorial 03: breaking news by tags and templates.
///
/// A subscriber per platform follows categories; the console program sends to all six; a deselected category no longer
/// arrives; a restart goes on with what was stored.
@Suite("03 Breaking news")
struct BreakingNews {
    @Test("each subscriber gets its categories, from a separate tidings process", .timeLimit(.minutes(5)))
    func eachItsOwn() async throws {
        try await World.run { world in
            let apple = try await world.device("apple", .apns)
            let google = try await world.device("google", .fcmV1)
            let windows = try await world.device("windows", .wns)
            let phone = try await world.device("phone", .mpns)
            try await phone.subscribe(["Sports", "Science"])
            try await apple.subscribe(["World", "Sports"])
            try await google.subscribe(["Politics"])
            try await windows.subscribe(["World", "Business", "Technology", "Science"])

            let output = try await Programs.tidings(
                ["send", "--news", "--wait", "--json"],
                connection: try world.connectionString(full: true),
                ca: try world.authorityFile
            )

            #expect(output.status == 0)
            #expect(output.lines.count == 6)
            #expect(try await texts(apple, 2) == ["Breaking World News!", "Breaking Sports News!"])
            #expect(try await texts(google, 1) == ["Breaking Politics News!"])
            #expect(try await texts(phone, 2) == ["Breaking Sports News!", "Breaking Science News!"])
            #expect(
                try await texts(windows, 4)
                    == Set(["World", "Business", "Technology", "Science"].map { "Breaking \($0) News!" })
            )
        }
    }

    private func texts(_ device: WorldDevice, _ count: Int) async throws -> Set<String> {
        var texts = Set<String>()
        for _ in 0..<count { texts.insert(try await device.nextText()) }
        return texts
    }

    @Test("a deselected category no longer arrives, and the registration stays one")
    func deselected() async throws {
        try await World.run { world in
            let device = try await world.device("apple", .apns)
            try await device.subscribe(["World", "Sports"])
            try await device.subscribe(["Sports"])

            let registrations = try await world.hub().registrations()
            #expect(registrations.count == 1)
            #expect(registrations.first?.content.template?.name == "simpleAPNSTemplate")
            #expect(registrations.first?.content.template?.expiry == "0")

            for category in ["World", "Sports"] {
                _ = try await world.hub().send(.template(#"{"messageParam":"\#(category)"}"#), tags: category)
            }
            #expect(try await device.nextText() == "Sports")
        }
    }

    @Test("at a start the stored categories are subscribed again, unless that was under a day ago")
    func restart() async throws {
        try await World.run { world in
            let device = try await world.device("apple", .apns)
            try await device.subscribe(["World"])
            await device.stop()
            try await world.start(device)
            _ = try await device.daemon.currentHandleForTests()
            #expect(try await world.hub().registrations().first?.etag == 1)

            await device.stop()
            world.clock.advance(by: .seconds(25 * 3600))
            try await world.start(device)
            _ = try await device.nextEvent("subscribed")
            #expect(try await world.hub().registrations().first?.etag == 2)
            _ = try await world.hub().send(.template(#"{"messageParam":"again"}"#), tags: "World")
            #expect(try await device.nextText() == "again")
        }
    }

    @Test("--none removes the registration: no untagged broadcast arrives any more")
    func none() async throws {
        try await World.run { world in
            let device = try await world.device("apple", .apns)
            try await device.subscribe(["World"])
            try await device.subscribe([])
            #expect(try await world.hub().registrations().isEmpty)
            let (wanted, confirmed) = try await device.daemon.categories()
            #expect(wanted.isEmpty && confirmed.isEmpty)
        }
    }

    @Test(
        "a device with a Send string notifies categories; with Listen alone the hub names the missing right"
    )
    func fromTheDevice() async throws {
        try await World.run { world in
            var options = World.DeviceOptions()
            options.maySend = true
            let sender = try await world.device("sender", .apns, options)
            let reader = try await world.device("reader", .wns)
            try await reader.subscribe(["Sports"])

            let sent = try await sender.daemon.send(
                categories: ["Sports", "World"],
                text: #"It's "over" \o/"#
            )
            #expect(sent.map(\.isSuccess) == [true, true])
            #expect(sent.map(\.status) == [201, 201])
            #expect(try await reader.nextText() == #"Breaking Sports News : It's "over" \o/"#)

            let refused = try await reader.daemon.send(categories: ["Sports"], text: "no")
            #expect(refused.first?.status == 401)
            #expect(refused.first?.reason.contains("Send") == true)
        }
    }

    @Test("a test send from the console shows each registration's outcome", .timeLimit(.minutes(5)))
    func testSend() async throws {
        try await World.run { world in
            let device = try await world.device("apple", .apns)
            try await device.subscribe(["World"])
            let arguments = ["send", "--test", "--tag", "World", "--template"]
            let output = try await Programs.tidings(
                arguments + ["messageParam=a test"],
                connection: try world.connectionString(full: true),
                ca: try world.authorityFile
            )
            #expect(output.status == 0, "\(output.errors)")
            #expect(output.lines.first == "test send to World  success 1, failure 0")
            #expect(output.lines.last?.contains("apple  The Notification was successfully sent") == true)
            #expect(try await device.nextText() == "a test")

            let json = try await Programs.tidings(
                arguments + ["messageParam=again", "--json"],
                connection: try world.connectionString(full: true),
                ca: try world.authorityFile
            )
            let value = try JSONValue(parsing: Array((json.lines.first ?? "").utf8))
            #expect(value["success"]?.integerValue == 1)
            #expect(
                value["results"]?.arrayValue?.first?["handle"]?.stringValue
                    == (try await device.handle().uppercased())
            )
        }
    }

    @Test("a template that fits no native send, and a native send that fits no template")
    func templatesApart() async throws {
        try await World.run { world in
            let device = try await world.device("apple", .apns)
            try await device.subscribe(["World"])
            let native = try #require(
                try await world.hub().send(.native(.apns, #"{"aps":{"alert":"native"}}"#), tags: "World")
            )
            #expect(try await world.outcome(native).state == .noTargetFound)
            _ = try await world.hub().send(.template(#"{"MESSAGEPARAM":"template"}"#), tags: "World")
            #expect(try await device.nextText() == "template")
        }
    }
}

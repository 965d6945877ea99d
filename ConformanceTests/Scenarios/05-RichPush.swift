import DeviceDaemon
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsConformance
import TidingsModels
import Testing

/// Tutorial 05: a picture.
///
/// The push carries message, type and id; the device fetches the bytes and shows them when the user asks for more.
@Suite("05 Rich push")
struct RichPush {
    @Test("the picture arrives byte for byte with its type", arguments: [Platform.apns, .fcmV1, .wns])
    func byteForByte(platform: Platform) async throws {
        try await World.run { world in
            let device = try await world.device("phone", platform)
            try await device.login("alice")
            let image = picture(7, byteCount: 300_000)
            try await world.app("bob").sendRich(image, type: "image/png", message: "Look!", to: "alice")

            let event = try await device.nextPush()
            #expect(event.name == "alert")
            #expect(event["text"] == "Look!")
            #expect(event.fields["actions"] == .array(["OK", "More"]))
            let opened = try await device.daemon.open(
                Int64(event.fields["id"]?.integerValue ?? 0),
                action: "richPushMore"
            )
            #expect(opened["contentType"]?.stringValue == "image/png")
            let file = try #require(opened["file"]?.stringValue)
            #expect(try Files.read(file) == image)
        }
    }

    @Test("in the background it is a local notification with the tutorial's category and action")
    func background() async throws {
        var options = World.DeviceOptions()
        options.isBackground = true
        options.localNotificationDelay = .seconds(3600)
        let delayed = options
        try await World.run { world in
            let device = try await world.device("phone", .apns, delayed)
            try await device.login("alice")
            try await world.app("alice").sendRich(picture(1), type: "image/png", message: "Later")
            _ = try await device.nextEvent("fetched")
            // Another push passes the one that waits; the clock then brings it.
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "now")
            #expect(try await device.nextText() == "From bob: now")
            world.clock.advance(by: .seconds(3601))
            let event = try await device.nextPush()
            #expect(event.name == "local_notification")
            #expect(event["category"] == "richPush")
            #expect(event["text"] == "Later")
            #expect(event.fields["actions"]?.arrayValue?.first?["id"] == "richPushMore")
            let opened = try await device.daemon.open(
                Int64(event.fields["id"]?.integerValue ?? 0),
                action: "richPushMore"
            )
            #expect(try Files.read(opened["file"]?.stringValue ?? "") == picture(1))
        }
    }

    @Test("two pictures in flight keep apart")
    func twoPictures() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await world.app("alice").sendRich(picture(1), type: "image/png", message: "first")
            try await world.app("alice").sendRich(picture(2), type: "image/png", message: "second")
            var files: [String: [UInt8]] = [:]
            for _ in 0..<2 {
                let event = try await device.nextPush()
                let opened = try await device.daemon.open(
                    Int64(event.fields["id"]?.integerValue ?? 0),
                    action: nil
                )
                files[event["text"] ?? ""] = try Files.read(opened["file"]?.stringValue ?? "")
            }
            #expect(files == ["first": picture(1), "second": picture(2)])
        }
    }

    @Test(
        "URL, sound and coupon",
        arguments: [
            ("url", "https://example.net/menu?a=1&b=2"), ("coupon", "10 % off: \"SUMMER\"\nwith code <42>"),
        ]
    )
    func otherKinds(kind: String, content: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await world.app("alice").sendRich(kind: kind, content: content, message: "For you")
            let event = try await device.nextPush()
            #expect(event["richType"] == kind)
            let opened = try await device.daemon.open(
                Int64(event.fields["id"]?.integerValue ?? 0),
                action: "richPushMore"
            )
            #expect(opened[kind]?.stringValue == content)
        }
    }

    @Test("a sound is a file of its own")
    func sound() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .wns)
            try await device.login("alice")
            let sound = Array("OggS".utf8) + [UInt8](repeating: 9, count: 2000)
            try await world.app("alice").sendRich(sound, type: "audio/ogg", message: "Listen")
            let event = try await device.nextPush()
            #expect(event["richType"] == "sound")
            let opened = try await device.daemon.open(
                Int64(event.fields["id"]?.integerValue ?? 0),
                action: nil
            )
            #expect(opened["file"]?.stringValue?.hasSuffix(".ogg") == true)
            #expect(try Files.read(opened["file"]?.stringValue ?? "") == sound)
        }
    }

    @Test("an unknown kind still ends in one event with its message")
    func unknownKind() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await world.app("alice").sendRich(kind: "hologram", content: "x", message: "Look at this")
            let event = try await device.nextPush()
            #expect(event["text"] == "Look at this")
            #expect(event["reason"]?.contains("richType") == true)
        }
    }

    @Test("an upload that is too large, of another kind, or not what it says is refused and leaves nothing")
    func refusedUploads() async throws {
        var options = World.Options()
        options.uploadByteCountMax = 10_000
        let small = options
        try await World.run(small) { world in
            let cases: [(String, [UInt8], Int)] = [
                ("image/png", picture(1, byteCount: 20_000), 413),
                ("image/png", Array("GIF89a and no picture".utf8), 400),
                ("image/tiff", picture(1), 400), ("audio/ogg", [], 400),
            ]
            for (type, body, status) in cases {
                let answer = try await world.backend(
                    "POST",
                    "/api/notifications?message=x",
                    as: "alice",
                    fields: ["Content-Type": type],
                    body: body
                )
                #expect(answer.status.code == status, "\(type) with \(body.count) bytes")
            }
        }
    }

    @Test("the rich sample answers the tutorials' bare POST when it is configured")
    func sample() async throws {
        var options = World.Options()
        options.sample = "rich"
        let rich = options
        try await World.run(rich) { world in
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            #expect(try await world.backend("POST", "/api/notifications", as: "alice").status.code == 200)
            let event = try await device.nextPush()
            #expect(event["richType"] == "img")
            let opened = try await device.daemon.open(
                Int64(event.fields["id"]?.integerValue ?? 0),
                action: nil
            )
            #expect(opened["contentType"]?.stringValue == "image/png")
        }
    }
}

import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// Quotes, emoji, line ends, markup and the edge of 4 KiB: byte for byte, or refused with the reason.
@Suite("12 Difficult text")
struct DifficultText {
    private static let texts = [
        #"quotes " and ' and \ and \" "#, "emoji 👩‍👩‍👧‍👦 🇸🇪 é é", "two\nlines and\ta tab",
        "]]> <b>&amp;</b> <![CDATA[", "$(messageParam) {'x'} #(1)",
        "\u{202E}right to left\u{202C}", "null\u{FFFD}",
    ]

    @Test("a text arrives byte for byte", arguments: [Platform.apns, .fcmV1, .wns])
    func byteForByte(platform: Platform) async throws {
        try await World.run { world in
            let device = try await world.device("phone", platform)
            try await device.login("alice")
            try await device.subscribe(["World"])
            for text in Self.texts {
                try await world.app("bob").notify(platform: platform.appName, user: "alice", text: text)
                #expect(try await device.nextText() == "From bob: " + text)
                let values = JSONValue.object(["messageParam": .string(text)])
                _ = try await world.hub().send(.template(values.text), tags: "World")
                #expect(try await device.nextText() == text)
            }
        }
    }

    @Test(
        "a payload at the limit arrives, one byte more is refused with the reason",
        arguments: [Platform.apns, .fcmV1, .wns]
    )
    func limit(platform: Platform) async throws {
        try await World.run { world in
            let device = try await world.device("phone", platform)
            try await device.login("alice")
            let prefix = "From bob: ".utf8.count
            let room =
                switch platform {
                case .apns: 4096 - #"{"aps":{"alert":""}}"#.utf8.count - prefix
                case .wns:
                    5000 - prefix
                        - #"<toast><visual><binding template="ToastText01"><text id="1"></text></binding></visual></toast>"#
                        .utf8.count
                default: 4096 - "message".utf8.count - prefix
                }
            let fitting = String(repeating: "x", count: room)
            try await world.app("bob").notify(platform: platform.appName, user: "alice", text: fitting)
            #expect(try await device.nextText() == "From bob: " + fitting)

            let answer = try await world.backend(
                "POST",
                "/api/notifications?pns=\(platform.appName)&to_tag=alice",
                as: "bob",
                json: "\"\(fitting)y\""
            )
            #expect(answer.status.code == 413)
            #expect(answer.text.contains("bytes"))
        }
    }

    @Test("a template that renders too long ends as InvalidNotificationSize")
    func renderedTooLong() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await device.subscribe(["World"])
            let long = String(repeating: "y", count: 4096)
            let id = try #require(
                try await world.hub().send(.template(#"{"messageParam":"\#(long)"}"#), tags: "World")
            )
            #expect(try await world.outcome(id).outcomes == [.apns: [.invalidNotificationSize: 1]])
        }
    }

    @Test("a control character that XML cannot carry is refused for Windows and passes elsewhere")
    func controlCharacter() async throws {
        try await World.run { world in
            let windows = try await world.backend(
                "POST",
                "/api/notifications?pns=wns&to_tag=alice",
                as: "bob",
                json: "\"bell \\u0007\""
            )
            #expect(windows.status.code == 400)
            #expect(windows.text.contains("control character"))
            let apple = try await world.backend(
                "POST",
                "/api/notifications?pns=apns&to_tag=alice",
                as: "bob",
                json: "\"bell \\u0007\""
            )
            #expect(apple.status.code == 200)
        }
    }
}

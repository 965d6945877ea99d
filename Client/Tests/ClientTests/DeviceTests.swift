import DeviceLink
import Foundation
import GatewayConnection
import JSONBytes
import Testing
import TidingsModels

@testable import DeviceDaemon

@Suite("What a push says")
struct PushContentTests {
    private func content(
        _ platform: Platform,
        _ data: String,
        _ headers: [String: String] = [:]
    ) -> PushContent {
        PushContent(
            DeviceNotification(
                channelID: "c",
                version: "v",
                platform: platform,
                headers: headers,
                data: Array(data.utf8)
            )
        )
    }

    @Test(
        "Apple",
        arguments: [
            (#"{"aps":{"alert":"Hi"},"inAppMessage":"no"}"#, PushContent.text(title: nil, body: "Hi")),
            (#"{"aps":{"alert":{"title":"T","body":"B"}}}"#, .text(title: "T", body: "B")),
            (#"{"aps":{},"inAppMessage":"In"}"#, .text(title: nil, body: "In")),
            (#"{"aps":{"content-available":1},"secureId":"7"}"#, .secure(id: 7)),
            (#"{"secureId":7}"#, .secure(id: 7)),
            (#"{"richId":"8","richMessage":"M","richType":"img"}"#, .rich(id: 8, message: "M", type: "img")),
            (#"{"aps":{"badge":1}}"#, .silent),
            (#"{"secureId":"x"}"#, .unreadable(reason: "secureId is not a 31-bit integer")),
            (#"{"secureId":"99999999999"}"#, .unreadable(reason: "secureId is not a 31-bit integer")),
            ("nonsense", .unreadable(reason: "the payload is not a JSON object")),
        ]
    )
    func apple(data: String, expected: PushContent) { #expect(content(.apns, data) == expected) }

    @Test(
        "Google",
        arguments: [
            (#"{"data":{"message":"Hi"}}"#, PushContent.text(title: nil, body: "Hi")),
            (#"{"data":{"secureId":"7"}}"#, .secure(id: 7)),
            (#"{"notification":{"title":"T","body":"B"}}"#, .text(title: "T", body: "B")),
            (#"{"data":{"x":"y"}}"#, .silent),
            (#"{"data":{"richId":"1","richType":"url"}}"#, .rich(id: 1, message: "", type: "url")),
        ]
    )
    func google(data: String, expected: PushContent) { #expect(content(.fcmV1, data) == expected) }

    @Test(
        "Windows",
        arguments: [
            (
                "<toast><visual><binding><text id='1'>Hi &amp; bye</text></binding></visual></toast>",
                "wns/toast", PushContent.text(title: nil, body: "Hi & bye")
            ),
            ("<toast><text>T</text><text>B</text></toast>", "wns/toast", .text(title: "T", body: "B")),
            ("42", "wns/raw", .secure(id: 42)),
            ("some text", "wns/raw", .text(title: nil, body: "some text")),
            (
                #"{"richId":"3","richMessage":"m","richType":"img"}"#, "wns/raw",
                .rich(id: 3, message: "m", type: "img")
            ),
            ("<badge value='1'/>", "wns/badge", .silent),
            ("<toast", "wns/toast", .unreadable(reason: "the payload is not XML")),
        ]
    )
    func windows(data: String, type: String, expected: PushContent) {
        #expect(content(.wns, data, ["x-wns-type": type]) == expected)
    }

    @Test(
        "Windows Phone",
        arguments: [
            (
                "<wp:Toast><wp:Text1>T</wp:Text1><wp:Text2>B &amp; b</wp:Text2><wp:Param>p</wp:Param></wp:Toast>",
                PushContent.text(title: "T", body: "B & b")
            ),
            ("<wp:Toast><wp:Text1>Hi</wp:Text1></wp:Toast>", .text(title: nil, body: "Hi")),
            (
                "<wp:Tile><wp:Count>3</wp:Count><wp:Title>Hi</wp:Title></wp:Tile>",
                .text(title: nil, body: "Hi")
            ),
            ("<wp:Tile><wp:Count>3</wp:Count></wp:Tile>", .silent),
            ("", .unreadable(reason: "the payload is not XML with a toast or tile")),
        ]
    )
    func windowsPhone(inner: String, expected: PushContent) {
        let body = "<wp:Notification xmlns:wp=\"WPNotification\">\(inner)</wp:Notification>"
        #expect(content(.mpns, body, ["x-windowsphone-target": "toast"]) == expected)
    }

    @Test("a raw notification of a Windows phone, and Amazon's data")
    func rawAndAmazon() {
        #expect(content(.mpns, "42") == .secure(id: 42))
        #expect(content(.mpns, "text") == .text(title: nil, body: "text"))
        #expect(content(.mpns, "<", ["x-windowsphone-target": "toast"]) != .silent)
        #expect(content(.adm, #"{"data":{"message":"Hi"}}"#) == .text(title: nil, body: "Hi"))
        #expect(content(.adm, #"{"data":{"secureId":"7"}}"#) == .secure(id: 7))
    }
}

@Suite("What a device keeps")
struct DeviceStateTests {
    @Test("the state file comes back as it was, is private, and the installation id is made once")
    func roundTrip() throws {
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(
            "tidings-\(UUID().uuidString).json"
        ).path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var state = try DeviceState.load(path, newInstallationID: "first")
        state.uaid = "u"
        state.channelID = "c"
        state.handle = "h"
        state.login = .init(user: "alice", password: "p:w\"ö")
        state.loginTags = ["x"]
        state.registration = .init(
            id: "1-2-3",
            backend: "b",
            user: "alice",
            handle: "h",
            tags: ["x"],
            style: "handle",
            at: Timestamp(milliseconds: 5)
        )
        state.wantedCategories = ["World"]
        state.wantedLocale = "English"
        state.subscription = .init(
            id: "4-5-6",
            handle: "h",
            categories: ["World"],
            locale: nil,
            at: Timestamp(milliseconds: 6)
        )
        try state.save(path)
        #expect(try DeviceState.load(path, newInstallationID: "second") == state)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let names =
            try JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: path)))
            as? [String: Any]
        #expect(names?["RegistrationId"] as? String == "1-2-3")
        #expect(names?["PushToUserInstallationId"] as? String == "first")
        #expect(names?["BreakingNewsCategories"] != nil)
    }

    @Test("reconnecting waits anything up to a bound that doubles, up to a minute (full jitter)")
    func reconnect() {
        let policy = ReconnectPolicy()
        #expect(policy.delay(afterFailures: 0, jitter: 0) == .zero)
        #expect(policy.delay(afterFailures: 0, jitter: 0.75) == .milliseconds(750))
        #expect(policy.delay(afterFailures: 3, jitter: 0) == .zero)
        #expect(policy.delay(afterFailures: 3, jitter: 0.5) == .seconds(4))
        #expect(policy.delay(afterFailures: 1000, jitter: 0.5) == .seconds(30))
    }
}

@Suite("A command for each event")
struct EventCommandTests {
    private func event(_ text: String) -> DeviceEvent { DeviceEvent("notification", ["text": .string(text)]) }

    private func lines(_ path: String) throws -> [String] {
        try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    @Test("each event comes to standard input, in order; quotes in the command are the shell's")
    func inOrder() async throws {
        let path = NSTemporaryDirectory() + "tidings-exec-\(UUID().uuidString)"
        defer { unlink(path) }
        let command = EventCommand("cat >> '\(path)'; echo 'it'\"'s\" done >> \(path)")
        let events = (1...3).map { event("number \($0)") }
        for event in events { #expect(command.submit(event)) }
        await command.finish()
        #expect(try lines(path) == events.flatMap { [$0.line, "it's done"] })
    }

    @Test("a command that hangs is ended and holds nothing up for good; its end is not awaited for ever")
    func hanging() async throws {
        let path = NSTemporaryDirectory() + "tidings-exec-\(UUID().uuidString)"
        defer { unlink(path) }
        let command = EventCommand(
            "read line; echo \"$line\" >> \(path); case $line in *hang*) sleep 1000;; esac",
            timeLimit: 1
        )
        let events = [event("hang"), event("go on")]
        for event in events { #expect(command.submit(event)) }
        await command.finish(within: .seconds(60))
        #expect(try lines(path) == events.map(\.line))

        let stuck = EventCommand("sleep 1000", timeLimit: 5)
        // One runs, the others wait.
        let taken = (0...EventCommand.waitingCountMax + 1).filter { stuck.submit(event("\($0)")) }
        #expect((EventCommand.waitingCountMax...EventCommand.waitingCountMax + 1).contains(taken.count))
        await stuck.finish(within: .zero)
    }
}

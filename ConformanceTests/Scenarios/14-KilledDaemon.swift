import Foundation
import JSONBytes
import ProcessLifecycle
import TidingsConformance
import TidingsModels
import Testing

/// The daemon as a process, killed where it hurts. A printed line may be lost; an inbox entry never, and nothing is shown twice.
@Suite("14 Killed daemon", .timeLimit(.minutes(5)))
struct KilledDaemon {
    /// A daemon's arguments and what to ask it.
    private struct Device {
        let state: String
        let arguments: [String]

        init(_ world: World, _ folder: String, gateway: String? = nil, backend: String? = nil) throws {
            state = folder + "/d"
            arguments = [
                "run", "--state", state, "--ca", try world.authorityFile, "--gateway",
                try gateway ?? world.gatewayURL, "--backend", try backend ?? world.backendURL,
            ]
        }

        func start(_ more: [String] = []) throws -> Programs.Running {
            try Programs.start("tidings-device", arguments + more)
        }

        func control(_ words: [String], input: String = "") async throws -> [JSONValue] {
            let output = try await Programs.run(
                "tidings-device",
                words + ["--state", state],
                [:],
                input: input
            )
            #expect(output.status == 0, "\(words): \(output.errors)")
            return try output.lines.map { try JSONValue(parsing: Array($0.utf8)) }
        }

        func handle() async throws -> String {
            try #require(try await control(["status", "--wait"]).first?["handle"]?.stringValue)
        }

        func inbox() async throws -> [String] {
            try await control(["inbox"]).map { $0["text"]?.stringValue ?? "-" }
        }
    }

    /// Reads lines until an event shows a text.
    private func shown(_ process: Programs.Running) async throws -> String {
        while true {
            let line = try await process.nextLine()
            try #require(!line.isEmpty, "the daemon ended")
            if let text = try JSONValue(parsing: Array(line.utf8))["text"]?.stringValue { return text }
        }
    }

    private func kill(_ process: Programs.Running) async throws {
        process.send(SIGKILL)
        #expect(try await process.end().status == 128 + SIGKILL)
    }

    @Test("between store and ack: the gateway sends again, the device has it and shows it no more")
    func beforeTheAck() async throws {
        try await World.run { world in
            try await ScratchFolder.run { folder in
                let proxy = try HoldingProxy(before: try world.gatewayURL)
                defer { proxy.stop() }
                let first = try Device(world, folder, gateway: proxy.url)
                var process = try first.start()
                try await world.registerNative(try await first.handle(), .apns, tag: "me")
                func send(_ text: String) async throws {
                    _ = try await world.hub().send(
                        .native(.apns, "{\"aps\":{\"alert\":\"\(text)\"}}"),
                        tags: "me"
                    )
                }
                // What the device acknowledges from here on is never heard.
                proxy.hold()
                try await send("one")
                #expect(try await shown(process) == "one")
                try await kill(process)

                let counters = try world.server.counters
                let sent = counters["gateway_notifications_sent_total"]
                let again = try Device(world, folder)
                process = try again.start()
                try await send("two")
                #expect(try await shown(process) == "two")
                // "one" was sent again before "two" (mailbox order), and dropped.
                #expect(counters["gateway_notifications_sent_total"] == sent + 2)
                #expect(try await again.inbox() == ["one", "two"])
                process.send(SIGTERM)
                #expect(try await process.end().status == 0)
            }
        }
    }

    @Test("between store and show: the entry is there, and is shown once after the next start")
    func beforeTheShow() async throws {
        try await World.run { world in
            try await ScratchFolder.run { folder in
                let proxy = try HoldingProxy(before: try world.backendURL)
                defer { proxy.stop() }
                let first = try Device(world, folder, backend: proxy.url)
                var process = try first.start()
                _ = try await first.handle()
                _ = try await first.control(["login", "alice"], input: "alice\n")
                // The secret is asked for and never answered: the push is stored, acknowledged and not shown.
                proxy.hold()
                let counters = try world.server.counters
                let acks = counters["gateway_acks_total"]
                _ = try await world.app("bob").sendSecure("the PIN is 4711", to: "alice")
                while counters["gateway_acks_total"] == acks { try await Task.sleep(for: .milliseconds(5)) }
                try await kill(process)

                let again = try Device(world, folder)
                process = try again.start()
                #expect(try await shown(process) == "the PIN is 4711")
                try await world.app("bob").notify(platform: "apns", user: "alice", text: "next")
                #expect(try await shown(process) == "From bob: next")
                #expect(try await again.inbox() == ["the PIN is 4711", "From bob: next"])
                try await kill(process)

                // Shown is shown: the next start brings only what is new.
                process = try again.start()
                try await world.app("bob").notify(platform: "apns", user: "alice", text: "last")
                #expect(try await shown(process) == "From bob: last")
                process.send(SIGTERM)
                #expect(try await process.end().status == 0)
            }
        }
    }

    @Test("during --exec: the event was shown, its command is not run again, the next one's is")
    func duringExec() async throws {
        try await World.run { world in
            try await ScratchFolder.run { folder in
                let device = try Device(world, folder)
                let log = folder + "/log"
                // Notes its event, and hangs in the first push until a file is there.
                let command =
                    "e=$(cat); echo \"$e\" >> \(log); case \"$e\" in *one*) while [ ! -e \(folder)/go ]; do sleep 0.05; done;; esac"
                var process = try device.start(["--exec", command])
                try await world.registerNative(try await device.handle(), .apns, tag: "me")
                func send(_ text: String) async throws {
                    _ = try await world.hub().send(
                        .native(.apns, "{\"aps\":{\"alert\":\"\(text)\"}}"),
                        tags: "me"
                    )
                }
                func logged(_ text: String) async throws -> String {
                    while true {
                        let log = String(decoding: try Files.read(log) ?? [], as: UTF8.self)
                        if log.contains(text) { return log }
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
                try await send("one")
                #expect(try await shown(process) == "one")
                _ = try await logged("\"text\":\"one\"")
                try await kill(process)
                try Files.replace(folder + "/go", with: [])

                process = try device.start(["--exec", command])
                try await send("two")
                #expect(try await shown(process) == "two")
                let text = try await logged("\"text\":\"two\"")
                #expect(
                    text.split(separator: "\n").count(where: { $0.contains("\"text\":\"one\"") }) == 1,
                    "\(text)"
                )
                #expect(try await device.inbox() == ["one", "two"])
                process.send(SIGTERM)
                #expect(try await process.end().status == 0)
            }
        }
    }
}

import HTTPMessages
import HubClient
import Testing
import TidingsConformance
import TidingsModels

/// A push service that is down, from outside: what the operator sees of it, and that its targets wait.
@Suite("Open circuit")
struct OpenCircuit {
    private func metrics(_ world: World) async throws -> [Substring] {
        try await world.request("GET", try world.hubURL + "/-/metrics").text.split(separator: "\n")
            .filter { $0.contains("platform=\"apns\"") }
    }

    @Test("it shows in the metrics and the log; the send waits, and ends when the service is back")
    func down() async throws {
        try await World.run { world in
            let hub = try world.hub()
            for index in 100..<140 {
                let handle = String(repeating: "A", count: 61) + String(index)
                try await world.registerNative(handle, .apns, tag: "all")
            }
            try await world.fault(#"{"fault":"answer","status":503,"platform":"apns"}"#)
            let id = try #require(try await hub.send(.native(.apns, #"{"aps":{"alert":"x"}}"#), tags: "all"))
            let open = #"tidings_hub_circuits_open{hub="tidings",platform="apns"} 1"#
            // A scrape is how an operator sees it. On a slow machine it may have opened again by then.
            func isSeen() async throws -> Bool {
                let lines = try await metrics(world)
                return lines.contains(open[...])
                    && lines.contains {
                        $0.hasPrefix(#"tidings_hub_circuits_opened_total{platform="apns"} "#)
                    }
                    && String(decoding: world.logBytes, as: UTF8.self).contains("circuit_opened")
            }
            while try await !isSeen() { try await Task.sleep(for: .milliseconds(5)) }
            #expect(try await hub.details(id).state == .processing)

            // Another platform goes on.
            let phone = try await world.device("phone", .fcmV1)
            try await world.registerNative(phone, .fcmV1, tag: "all")
            _ = try await hub.send(
                .native(.fcmV1, #"{"message":{"notification":{"body":"on"}}}"#),
                tags: "all"
            )
            #expect(try await phone.nextText() == "on")

            try await world.clearFaults()
            var details = try await hub.details(id)
            while !details.state.isFinal {
                world.clock.advance(by: .seconds(1))
                try await Task.sleep(for: .milliseconds(5))
                details = try await hub.details(id)
            }
            // The gateway never issued these handles.
            #expect(details.outcomes == [.apns: [.badChannel: 40]])
            #expect(try await !metrics(world).contains(open[...]))
            #expect(String(decoding: world.logBytes, as: UTF8.self).contains("circuit_closed"))
        }
    }
}

import DeviceDaemon
import HTTPMessages
import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// One id from the request to the device's acknowledgement.
@Suite("Trace ids")
struct TraceIDs {
    /// The log lines of one trace, as service and event.
    private func steps(_ world: World, _ trace: String) -> [String] {
        String(decoding: world.logBytes, as: UTF8.self).split(separator: "\n").compactMap { line in
            guard let entry = try? JSONValue(parsing: Array(line.utf8)), entry["trace"]?.stringValue == trace,
                let service = entry["service"]?.stringValue, let event = entry["event"]?.stringValue
            else { return nil }
            return service + " " + event
        }
    }

    @Test(
        "a send through the app back end: hub, gateway and device name the same trace, and so do its outcomes",
        arguments: ["apns", "fcm", "wns"]
    )
    func endToEnd(platform: String) async throws {
        try await World.run { world in
            let device = try await world.device("phone", try #require(Platform(appName: platform)))
            try await device.login("alice")
            let trace = "0af7651916cd43dd8448eb211c80319c"
            let answer = try await world.backend(
                "POST",
                "/api/notifications?pns=\(platform)&to_tag=alice",
                as: "bob",
                json: "\"hi\"",
                fields: ["traceparent": "00-\(trace)-b7ad6b7169203331-01"]
            )
            #expect(answer.status.code == 200)
            #expect(answer.fields["Tidings-Trace-Id"] == trace)
            #expect(try await device.nextText() == "From bob: hi")
            let expected: Set = [
                "gateway message_arrived", "gateway message_sent", "device push_stored", "device push_shown",
                "gateway message_acknowledged", "hub send_ended",
            ]
            // The acknowledgement and the end of the send are on their way.
            while !expected.isSubset(of: steps(world, trace)) { try await Task.sleep(for: .milliseconds(5)) }
            #expect(Set(steps(world, trace)) == expected)

            let id = try #require(answer.fields["Tidings-Notification-Id"]?.split(separator: "=").last)
            let details = try await world.signed("GET", "/tidings/messages/\(id)?api-version=2015-04")
            #expect(details.status.code == 200 && details.fields["Tidings-Trace-Id"] == trace)
        }
    }

    @Test("a request without a trace gets one; a broken one is replaced; a retry after a restart keeps it")
    func made() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            try await world.registerNative(device, .apns, tag: "me")
            func send(_ parent: String?) async throws -> String {
                var fields: HTTPFields = [
                    "ServiceBusNotification-Format": "apple", "ServiceBusNotification-Tags": "me",
                    "ServiceBusNotification-ScheduleTime": "2000-01-01T00:00:00",
                ]
                if let parent { fields["traceparent"] = parent }
                let answer = try await world.signed(
                    "POST",
                    "/tidings/schedulednotifications",
                    fields: fields,
                    body: #"{"aps":{"alert":"x"}}"#
                )
                #expect(answer.status.code == 201)
                return try #require(answer.fields["Tidings-Trace-Id"])
            }
            var seen = Set<String>()
            for parent in [
                nil, "", "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                "00-xyz-b7ad6b7169203331-01",
                "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ] {
                let trace = try await send(parent)
                #expect(TraceID(trace) != nil && seen.insert(trace).inserted)
                #expect(try await device.nextText() == "x")
                while !steps(world, trace).contains("gateway message_acknowledged") {
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            // A refusal names it too, and its tracking id is the same digits.
            let refused = try await world.signed("POST", "/tidings/messages", body: "x")
            let trace = try #require(refused.fields["Tidings-Trace-Id"])
            #expect(refused.status.code == 400)
            #expect(refused.fields["TrackingId"]?.split(separator: "-").joined() == trace)
        }
    }
}

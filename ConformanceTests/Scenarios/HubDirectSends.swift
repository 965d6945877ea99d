import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import TidingsConformance
import TidingsModels
import Testing

/// Sends to handles that need no registration (protocol reference, sections 5.4 and 5.5).
@Suite("The hub's direct sends")
struct HubDirectSends {
    private static let payload = #"{"aps":{"alert":"direct"}}"#

    private func batch(
        _ world: World,
        type: String = "multipart/mixed; boundary=\"b77\"",
        format: String = "apple",
        _ body: String
    ) async throws -> HTTPAnswer {
        try await world.signed(
            "POST",
            "/tidings/messages/$batch?direct&api-version=2020-06",
            fields: ["Content-Type": type, "ServiceBusNotification-Format": format],
            body: body
        )
    }

    private func parts(_ devices: String, payload: String = payload) -> String {
        "--b77\r\nContent-type: application/json\r\nContent-Disposition: inline; name=notification\r\n\r\n\(payload)\r\n"
            + "--b77\r\nContent-Type: application/json\r\nContent-Disposition: inline; name=devices\r\n\r\n\(devices)\r\n--b77--"
    }

    private func id(_ answer: HTTPAnswer) throws -> NotificationID {
        let location = try #require(answer.fields["Location"])
        return try #require(
            NotificationID(String(location.split(separator: "/").last?.prefix { $0 != "?" } ?? ""))
        )
    }

    @Test(
        "to one handle of each platform, and to many; a repeat is skipped, a malformed handle shows in the outcomes alone"
    )
    func direct() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let phone = try await world.device("phone", .apns)
            let handle = try PlatformHandle(try await phone.handle(), platform: .apns)
            let sent = try #require(try await hub.send(.native(.apns, Self.payload), to: handle))
            #expect(try await world.outcome(sent).outcomes == [.apns: [.success: 1]])
            #expect(try await phone.nextText() == "direct")

            let android = try await world.device("android", .fcmV1)
            let token = try PlatformHandle(try await android.handle(), platform: .fcmV1)
            let message = #"{"message":{"data":{"message":"both"}}}"#
            let many = try #require(try await hub.send(.native(.fcmV1, message), to: [token, token]))
            #expect(try await world.outcome(many).outcomes == [.fcmV1: [.success: 1, .skipped: 1]])
            #expect(try await android.nextText() == "both")

            let windows = try await world.device("pc", .wns)
            let toast = "<toast><visual><binding><text id=\"1\">hello</text></binding></visual></toast>"
            let channel = try PlatformHandle(try await windows.handle(), platform: .wns)
            #expect(
                try await world.outcome(try #require(try await hub.send(.native(.wns, toast), to: channel)))
                    .count(.success) == 1
            )
            #expect(try await windows.nextText() == "hello")

            let mixed = try await batch(
                world,
                parts(
                    #"["\#(handle.text)","xyz",""\#(handle.text.lowercased())""]"#.replacing(
                        "\"\"",
                        with: "\""
                    )
                )
            )
            #expect(mixed.status.code == 201 && mixed.body.isEmpty, "\(mixed.text)")
            #expect(mixed.fields["Location"]?.hasPrefix(try world.hubURL + "/tidings/messages/") == true)
            #expect(mixed.fields["Location"]?.contains("$batch") == false)
            let details = try await world.outcome(try id(mixed))
            #expect(details.outcomes == [.apns: [.success: 1, .skipped: 1, .badChannel: 1]])
            #expect(details.targetCount == 3)
            let other = try await world.signed("GET", "/tidings/messages/$batch/\(try id(mixed))")
            #expect(other.status.code == 200)
        }
    }

    @Test("the batch body in every form that SDKs write it, and what is refused with the reason")
    func batches() async throws {
        try await World.run { world in
            let good: [(String, String)] = [
                ("multipart/mixed; boundary = \"b77\"", parts(#"["ab12"]"#)),
                ("multipart/mixed;boundary=b77", parts("['ab12']")),
                ("multipart/mixed; boundary=b77", parts(#"["ab12"]"#).replacing("\r\n", with: "\n")),
                (
                    "multipart/mixed; boundary=b77",
                    "--b77\r\nContent-Disposition: inline; name=\"devices\"\r\n\r\n[\"ab12\"]\r\n"
                        + "--b77\r\nContent-Disposition: inline; name=\"notification\"\r\n\r\n\(Self.payload)\r\n--b77--\r\n"
                ),
            ]
            for (type, body) in good {
                let answer = try await batch(world, type: type, body)
                #expect(answer.status.code == 201, "\(type): \(answer.text)")
            }
            let thousand = "[" + (0..<1000).map { "\"\(String(10000 + $0))ab\"" }.joined(separator: ",") + "]"
            let full = try await batch(world, parts(thousand.replacing("ab\"", with: "a\"")))
            #expect(full.status.code == 201)
            #expect(try await world.outcome(try id(full)).targetCount == 1000)

            let bad: [(String, String, String)] = [
                ("application/json", "{}", "multipart/mixed"), ("multipart/mixed", "--\r\n", "boundary"),
                ("multipart/mixed; boundary=b77", "--b77\r\n\r\n{}", "--b77--"),
                ("multipart/mixed; boundary=b77", "--b77\r\n\r\n{}\r\n--b77--", "notification"),
                ("multipart/mixed; boundary=b77", parts("[]"), "0 devices"),
                ("multipart/mixed; boundary=b77", parts("{}"), "array"),
                ("multipart/mixed; boundary=b77", parts("[1]"), "string"),
                ("multipart/mixed; boundary=b77", parts("[\"a\""), "JSON"),
                (
                    "multipart/mixed; boundary=b77", parts(thousand.replacing("[", with: "[\"ff\",")),
                    "1001 devices"
                ),
                ("multipart/mixed; boundary=b77", parts(#"["ab12"]"#, payload: "{"), "JSON"),
            ]
            for (type, body, reason) in bad {
                let answer = try await batch(world, type: type, body)
                #expect(answer.status.code == 400 && answer.text.contains(reason), "\(type): \(answer.text)")
            }
            #expect(try await batch(world, format: "template", parts(#"["ab12"]"#)).status.code == 400)
        }
    }

    @Test(
        "direct sends: template and scheduled ones are refused, a test send tells the outcome, a dead handle loses its registrations"
    )
    func rules() async throws {
        try await World.run { world in
            func direct(
                _ fields: HTTPFields,
                path: String = "messages?direct",
                _ body: String = Self.payload
            ) async throws -> HTTPAnswer {
                try await world.signed("POST", "/tidings/" + path, fields: fields, body: body)
            }
            let format: HTTPFields = ["ServiceBusNotification-Format": "apple"]
            #expect(try await direct(format).text.contains("ServiceBusNotification-DeviceHandle"))
            var fields = format
            fields["ServiceBusNotification-DeviceHandle"] = "ab12"
            var template = fields
            template["ServiceBusNotification-Format"] = "template"
            #expect(try await direct(template, "{}").status.code == 400)
            var scheduled = fields
            scheduled["ServiceBusNotification-ScheduleTime"] = (world.clock.now + .seconds(60)).description
            let refused = try await direct(scheduled, path: "schedulednotifications?direct")
            #expect(refused.status.code == 400 && refused.text.contains("scheduled"))

            try await world.registerNative("ab12", .apns, tag: "t")
            let tested = try await direct(fields, path: "messages?direct&test")
            #expect(tested.status.code == 201)
            let outcome = try NotificationOutcomeXML.read(tested.body)
            #expect(outcome.failure == 1 && outcome.results.first?.pnsHandle == "AB12")
            #expect(try await world.hub().registrations(handle: "ab12").isEmpty)
        }
    }
}

import HTTPMessages
import HubClient
import Testing
import TidingsConformance
import TidingsModels

/// Windows phones, from the hub through MPNS's front door to a device.
@Suite("MPNS delivery")
struct MPNSDelivery {
    private static func notification(_ content: String) -> String {
        "<wp:Notification xmlns:wp=\"WPNotification\">\(content)</wp:Notification>"
    }

    private static func toast(_ text: String) -> String {
        notification("<wp:Toast><wp:Text1>News</wp:Text1><wp:Text2>\(text)</wp:Text2></wp:Toast>")
    }

    @Test("toasts, tiles and raw; native, template and installation; what waited; a handle that ended")
    func delivery() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("phone", .mpns)
            let handle = try await device.handle()
            #expect(handle.hasPrefix(try world.gatewayURL + "/mpns/"))
            try await world.registerNative(device, .mpns, tag: "native")
            try await TemplateTargets.register(handle, .mpns, tags: ["template"], at: hub)
            try await hub.put(
                Installation(
                    id: "phone-1",
                    handle: try PlatformHandle(handle, platform: .mpns),
                    tags: [try HubTag("installed")]
                )
            )
            let tile = Self.notification("<wp:Tile><wp:Title>a tile</wp:Title></wp:Tile>")
            for (tag, send, shown) in [
                ("native", .native(.mpns, Self.toast("a toast")), "a toast"),
                ("native", .native(.mpns, tile), "a tile"),
                ("native", .native(.mpns, "raw text"), "raw text"),
                ("template", .template(#"{"messageParam":"a template"}"#), "a template"),
                ("installed", .native(.mpns, Self.toast("installed")), "installed"),
            ] as [(String, HubNotification, String)] {
                let id = try #require(try await hub.send(send, tags: tag))
                #expect(try await device.nextText() == shown)
                #expect(try await world.outcome(id).outcomes == [.mpns: [.success: 1]])
            }

            await device.stop()
            for text in ["old", "new"] {
                let tile = Self.notification("<wp:Tile Id=\"1\"><wp:Title>\(text)</wp:Title></wp:Tile>")
                let id = try #require(try await hub.send(.native(.mpns, tile), tags: "native"))
                #expect(try await world.outcome(id).outcomes == [.mpns: [.success: 1]])
            }
            try await world.start(device)
            // Of one tile the newest state alone.
            #expect(try await device.nextText() == "new")

            try await device.renewHandle()
            let id = try #require(try await hub.send(.native(.mpns, Self.toast("gone")), tags: "native"))
            #expect(try await world.outcome(id).outcomes == [.mpns: [.expiredChannel: 1]])
            #expect(try await hub.registrations(tag: try HubTag("native")).isEmpty)
        }
    }

    private struct Refusal {
        var name: String
        var fields: HTTPFields
        var body: String
        /// The fields and the body of the twin that is taken.
        var twin: (fields: HTTPFields, body: String)
    }

    @Test("what the door refuses, each beside a twin that it takes")
    func refusals() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .mpns)
            let channel = try await device.handle()
            let toast: HTTPFields = [
                "Content-Type": "text/xml", "X-WindowsPhone-Target": "toast", "X-NotificationClass": "2",
            ]
            func with(_ name: String, _ value: String?) -> HTTPFields {
                var fields = toast
                fields[name] = value
                return fields
            }
            let good = Self.toast("x")
            let id = "11111111-2222-3333-4444-555555555555"
            let long = Self.toast(String(repeating: "a", count: 3072 - Self.toast("").utf8.count))
            let rows = [
                Refusal(
                    name: "target",
                    fields: with("X-WindowsPhone-Target", "badge"),
                    body: good,
                    twin: (toast, good)
                ),
                Refusal(
                    name: "class of another kind",
                    fields: with("X-NotificationClass", "1"),
                    body: good,
                    twin: (with("X-NotificationClass", "22"), good)
                ),
                Refusal(
                    name: "class of letters",
                    fields: with("X-NotificationClass", "two"),
                    body: good,
                    twin: (with("X-NotificationClass", nil), good)
                ),
                Refusal(
                    name: "message id",
                    fields: with("X-MessageID", "7"),
                    body: good,
                    twin: (with("X-MessageID", id), good)
                ),
                Refusal(
                    name: "content type",
                    fields: with("Content-Type", "application/json"),
                    body: good,
                    twin: (with("Content-Type", "text/xml; charset=utf-8"), good)
                ),
                Refusal(name: "not XML", fields: toast, body: "<toast>", twin: (toast, good)),
                Refusal(
                    name: "another root",
                    fields: toast,
                    body: good.replacing("WPNotification", with: "Other"),
                    twin: (toast, good)
                ),
                Refusal(
                    name: "a tile for a toast",
                    fields: toast,
                    body: Self.notification("<wp:Tile/>"),
                    twin: (
                        ["Content-Type": "text/xml", "X-WindowsPhone-Target": "token"],
                        Self.notification("<wp:Tile/>")
                    )
                ),
                Refusal(name: "3,073 bytes", fields: toast, body: long + " ", twin: (toast, long)),
                Refusal(
                    name: "1,025 raw bytes",
                    fields: [:],
                    body: String(repeating: "a", count: 1025),
                    twin: ([:], String(repeating: "a", count: 1024))
                ),
                Refusal(name: "empty", fields: [:], body: "", twin: ([:], "a")),
            ]
            for row in rows {
                let refused = try await world.request(
                    "POST",
                    channel,
                    fields: row.fields,
                    body: Array(row.body.utf8)
                )
                #expect(refused.status.code == 400, "\(row.name)")
                let taken = try await world.request(
                    "POST",
                    channel,
                    fields: row.twin.fields,
                    body: Array(row.twin.body.utf8)
                )
                #expect(taken.status.code == 200, "\(row.name): \(taken.text)")
                #expect(taken.fields["X-NotificationStatus"] == "Received")
                #expect(taken.fields["X-DeviceConnectionStatus"] == "Connected")
                #expect(taken.fields["X-SubscriptionStatus"] == "Active")
                #expect(taken.fields["X-MessageID"] == row.twin.fields["X-MessageID"])
            }
            let method = try await world.request("PUT", channel, fields: toast, body: Array(good.utf8))
            #expect(method.status.code == 405 && method.fields["Allow"] == "POST")

            let unknown = try await world.request(
                "POST",
                try world.gatewayURL + "/mpns/nobody",
                fields: toast,
                body: Array(good.utf8)
            )
            #expect(unknown.status.code == 404)
            #expect(unknown.fields["X-NotificationStatus"] == "Dropped")
            #expect(unknown.fields["X-SubscriptionStatus"] == "Expired")
            // The device is away: its mail waits.
            await device.stop()
            try await world.devicesConnected(0)
            let away = try await world.request("POST", channel, fields: toast, body: Array(good.utf8))
            #expect(away.fields["X-DeviceConnectionStatus"] == "TempDisconnected")
        }
    }

    @Test("faults speak the service's words")
    func faults() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .mpns)
            for (status, notification, deviceWord, subscription) in [
                (404, "Dropped", "Disconnected", "Expired"), (406, "Dropped", "Connected", "Active"),
                (412, "Dropped", "Inactive", nil), (503, nil, nil, nil),
            ] as [(Int, String?, String?, String?)] {
                try await world.fault(
                    "{\"fault\":\"answer\",\"status\":\(status),\"platform\":\"mpns\",\"count\":1}"
                )
                let answer = try await world.request("POST", try await device.handle(), body: Array("x".utf8))
                #expect(answer.status.code == status)
                #expect(answer.fields["X-NotificationStatus"] == notification)
                #expect(answer.fields["X-DeviceConnectionStatus"] == deviceWord)
                #expect(answer.fields["X-SubscriptionStatus"] == subscription)
            }
        }
    }
}

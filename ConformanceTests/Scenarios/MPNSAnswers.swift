import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import Testing
import TidingsModels

/// Our MPNS sender: what it sends, and each row of the reference's table (section 4.1).
@Suite("MPNS sender")
struct MPNSAnswers {
    private static let toast =
        "<wp:Notification xmlns:wp=\"WPNotification\"><wp:Toast><wp:Text1>Hi</wp:Text1></wp:Toast></wp:Notification>"
    private static let tile =
        "<wp:Notification xmlns:wp=\"WPNotification\"><wp:Tile><wp:Title>Hi</wp:Title></wp:Tile></wp:Notification>"

    private static func words(_ notification: String, _ device: String, _ subscription: String) -> HTTPFields
    {
        [
            "X-NotificationStatus": notification, "X-DeviceConnectionStatus": device,
            "X-SubscriptionStatus": subscription,
        ]
    }

    static let rows: [AnswerRow] = [
        .init(200, words("Received", "Connected", "Active"), .accepted),
        .init(200, words("Received", "TempDisconnected", "Active"), .accepted),
        .init(
            200,
            words("QueueFull", "Disconnected", "Active"),
            .retry(
                .channelThrottled,
                reason: "status 200, notification QueueFull, device Disconnected, subscription Active",
                after: .seconds(120)
            )
        ),
        .init(
            200,
            words("Suppressed", "Connected", "Active"),
            .refused(
                .dropped,
                reason: "status 200, notification Suppressed, device Connected, subscription Active"
            )
        ),
        .init(400, .refused(.invalidNotificationFormat, reason: "status 400")),
        .init(401, .refused(.invalidCredentials, reason: "status 401")),
        .init(
            404,
            words("Dropped", "Disconnected", "Expired"),
            .dead(
                .expiredChannel,
                reason: "status 404, notification Dropped, device Disconnected, subscription Expired",
                asOf: nil
            )
        ),
        .init(404, .refused(.badChannel, reason: "status 404")),
        .init(405, .refused(.pnsInterfaceError, reason: "status 405")),
        .init(406, .retry(.throttled, reason: "status 406", after: .seconds(3600))),
        .init(406, ["Retry-After": "7"], .retry(.throttled, reason: "status 406", after: .seconds(7))),
        .init(412, .retry(.channelDisconnected, reason: "status 412", after: .seconds(3600))),
        .init(413, .refused(.invalidNotificationSize, reason: "status 413")),
        .init(500, .retry(.pnsServerError, reason: "status 500", after: nil)),
        .init(503, ["Retry-After": "5"], .retry(.pnsUnavailable, reason: "status 503", after: .seconds(5))),
    ]

    @Test("each answer has its meaning, and only an expired channel is dead")
    func answers() async throws {
        try await ScriptedServer.run { server, url in
            let sender = MPNSSender(MPNSSettings(gatewayOrigins: [url.origin]), client: HTTPClient())
            for row in Self.rows {
                server.expect([row.response])
                let answer = try await SenderTrial.answer(
                    sender,
                    try SenderTrial.payload(.mpns, Self.toast),
                    url.description + "mpns/x",
                    .mpns
                )
                #expect(answer == row.answer, "\(row.testDescription)")
                #expect(server.requests == ["POST /mpns/x"])
            }
        }
    }

    @Test(
        "target, class and content type come from the body, or from the sender's headers",
        arguments: [
            (toast, [], "toast", "2", "text/xml"), (tile, [], "token", "1", "text/xml"),
            ("anything", [], nil, "3", "application/octet-stream"),
            ("<?xml version=\"1.0\" encoding=\"utf-16\"?>" + toast, [], "toast", "2", "text/xml"),
            (toast, [.init("X-NotificationClass", "12")], "toast", "12", "text/xml"),
            (
                tile, [.init("X-WindowsPhone-Target", "tile"), .init("X-NotificationClass", "21")], "token",
                "21", "text/xml"
            ),
            (toast, [.init("X-NotificationClass", "23")], nil, "23", "application/octet-stream"),
        ] as [(String, [RegistrationTemplate.Header], String?, String, String)]
    )
    func request(
        body: String,
        headers: [RegistrationTemplate.Header],
        target: String?,
        notificationClass: String,
        type: String
    ) async throws {
        try await ScriptedServer.run { server, url in
            let sender = MPNSSender(MPNSSettings(gatewayOrigins: [url.origin]), client: HTTPClient())
            server.expect([.init(200)])
            _ = try await SenderTrial.answer(
                sender,
                try SenderTrial.payload(.mpns, body, headers),
                url.description + "mpns/x",
                .mpns
            )
            let heard = try #require(server.heard.first)
            #expect(heard.fields["X-WindowsPhone-Target"] == target)
            #expect(heard.fields["X-NotificationClass"] == notificationClass)
            #expect(heard.fields["Content-Type"] == type)
            #expect(heard.fields["X-MessageID"] == SenderTrial.deliveryID)
            #expect(heard.fields["Tidings-Delivery-Id"] == SenderTrial.deliveryID)
            #expect(heard.text == (body.hasPrefix("<?xml") ? Self.toast : body))
        }
    }

    @Test("a channel that leads elsewhere is not followed")
    func elsewhere() async throws {
        try await ScriptedServer.run { server, url in
            server.expect([])
            let sender = MPNSSender(MPNSSettings(), client: HTTPClient())
            for channel in [
                url.description, "http://notify.live.net.evil.example/", "http://s.notify.live.net:81/",
            ] {
                let answer = try await SenderTrial.answer(
                    sender,
                    try SenderTrial.payload(.mpns, Self.toast),
                    channel,
                    .mpns
                )
                guard case .refused(.badChannel, _) = answer else {
                    Issue.record("\(channel): \(answer)")
                    continue
                }
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("what fits into no notification is refused before it is sent")
    func payloads() throws {
        #expect(throws: Never.self) { try SenderTrial.payload(.mpns, String(repeating: "a", count: 1024)) }
        for (body, headers, outcome) in [
            (String(repeating: "a", count: 1025), [], .invalidNotificationSize),
            (
                Self.toast.replacing("Hi", with: String(repeating: "a", count: 3072)), [],
                .invalidNotificationSize
            ),
            ("", [], .invalidNotificationFormat),
            ("no xml", [.init("X-WindowsPhone-Target", "toast")], .invalidNotificationFormat),
            (Self.toast, [.init("X-WindowsPhone-Target", "badge")], .invalidNotificationFormat),
        ] as [(String, [RegistrationTemplate.Header], Outcome)] {
            let refusal = #expect(throws: PayloadRefusal.self) {
                try SenderTrial.payload(.mpns, body, headers)
            }
            #expect(refusal?.outcome == outcome, "\(body.prefix(20))")
        }
    }
}

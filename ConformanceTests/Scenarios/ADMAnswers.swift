import HTTPMessages
import HTTPServing
import HubCore
import OutboundHTTP
import PlatformSenders
import Testing
import TidingsConformance
import TidingsModels

/// Our ADM sender: its requests, its token, and each row of the reference's table (section 4.2).
@Suite("ADM sender")
struct ADMAnswers {
    private static let token = HTTPResponse(
        200,
        ["Content-Type": "application/json"],
        text: #"{"access_token":"t1","expires_in":3600,"scope":"messaging:push","token_type":"Bearer"}"#
    )

    private static func refusal(_ status: HTTPStatus, _ reason: String, _ answer: TargetAnswer) -> AnswerRow {
        AnswerRow(status, [:], "{\"reason\":\"\(reason)\"}", answer)
    }

    static let rows: [AnswerRow] =
        [
            AnswerRow(200, [:], #"{"registrationID":"amzn1.x/../y"}"#, .accepted),
            AnswerRow(
                200,
                [:],
                #"{"registrationID":"amzn1.new"}"#,
                .replaced(by: PlatformHandle(unchecked: "amzn1.new", platform: .adm))
            ),
            AnswerRow(200, [:], #"{"registrationID":""}"#, .accepted),
            refusal(
                400,
                "InvalidRegistrationId",
                .dead(.badChannel, reason: "InvalidRegistrationId", asOf: nil)
            ),
            refusal(400, "Unregistered", .dead(.expiredChannel, reason: "Unregistered", asOf: nil)),
            refusal(413, "MessageTooLarge", .refused(.invalidNotificationSize, reason: "MessageTooLarge")),
            refusal(
                429,
                "MaxRateExceeded",
                .retry(.throttled, reason: "MaxRateExceeded", after: .seconds(60))
            ),
            refusal(
                500,
                "InternalServerError",
                .retry(.pnsServerError, reason: "InternalServerError", after: nil)
            ),
            AnswerRow(
                503,
                ["Retry-After": "9"],
                .retry(.pnsUnavailable, reason: "status 503", after: .seconds(9))
            ),
            AnswerRow(403, .refused(.invalidCredentials, reason: "status 403")),
            AnswerRow(404, .refused(.pnsInterfaceError, reason: "status 404")),
            AnswerRow(400, [:], "no json", .refused(.invalidNotificationFormat, reason: "status 400")),
        ]
        + ["InvalidData", "InvalidConsolidationKey", "InvalidExpiration", "InvalidChecksum", "InvalidType"]
        .map { refusal(400, $0, .refused(.invalidNotificationFormat, reason: $0)) }

    private func sender(_ url: HTTPURL) throws -> ADMSender {
        let settings = try ADMSettings(
            clientID: "id 1",
            clientSecret: "s&cret",
            tokenURL: try #require(HTTPURL(url.origin + "/auth/O2/token")),
            sendURL: url.origin + "/messaging/registrations/{0}/messages"
        )
        return ADMSender(settings, client: HTTPClient(), time: WorldClock())
    }

    private func send(_ sender: ADMSender) async throws -> TargetAnswer {
        try await SenderTrial.answer(
            sender,
            try SenderTrial.payload(.adm, #"{"data":{"message":"Hi"}}"#),
            "amzn1.x/../y",
            .adm
        )
    }

    @Test("each answer has its meaning, and only what is said of the id makes it dead")
    func answers() async throws {
        try await ScriptedServer.run { server, url in
            let sender = try sender(url)
            for (index, row) in Self.rows.enumerated() {
                server.expect((index == 0 ? [Self.token] : []) + [row.response])
                #expect(try await send(sender) == row.answer, "\(row.testDescription)")
            }
        }
    }

    @Test("the requests are Amazon's, and the token is asked for once")
    func requests() async throws {
        try await ScriptedServer.run { server, url in
            let sender = try sender(url)
            server.expect([Self.token, .init(200), .init(200)])
            for _ in 1...2 { #expect(try await send(sender) == .accepted) }
            let heard = server.heard
            try #require(heard.count == 3)
            #expect(heard[0].line == "POST /auth/O2/token")
            #expect(
                heard[0].text
                    == "grant_type=client_credentials&scope=messaging%3Apush&client_id=id%201&client_secret=s%26cret"
            )
            // An id from a client leads out of its path segment nowhere.
            #expect(heard[1].line == "POST /messaging/registrations/amzn1.x%2F..%2Fy/messages")
            let expected = [
                "Authorization": "Bearer t1", "Content-Type": "application/json",
                "Accept": "application/json",
                "X-Amzn-Type-Version": "com.amazon.device.messaging.ADMMessage@1.0",
                "X-Amzn-Accept-Type": "com.amazon.device.messaging.ADMSendResult@1.0",
                "Tidings-Delivery-Id": SenderTrial.deliveryID,
            ]
            for (name, value) in expected { #expect(heard[1].fields[name] == value, "\(name)") }
            #expect(heard[1].text == #"{"data":{"message":"Hi"}}"#)
        }
    }

    @Test("an expired token is renewed and the push sent again, once")
    func expiredToken() async throws {
        try await ScriptedServer.run { server, url in
            let sender = try sender(url)
            let expired = HTTPResponse(401, text: #"{"reason":"AccessTokenExpired"}"#)
            server.expect([Self.token, expired, Self.token, .init(200)])
            #expect(try await send(sender) == .accepted)
            #expect(server.requests.count == 4)
            server.expect([expired, Self.token, expired])
            #expect(
                try await send(sender) == .refused(.invalidCredentials, reason: "AccessTokenExpired")
            )
            #expect(server.requests.count == 3)
        }
    }

    @Test("what the token service refuses are the credentials, and its trouble passes")
    func tokenService() async throws {
        try await ScriptedServer.run { server, url in
            var fresh = try sender(url)
            server.expect([.init(401, text: #"{"error":"invalid_client"}"#)])
            #expect(
                try await send(fresh)
                    == .refused(.invalidCredentials, reason: "the token service: invalid_client")
            )
            fresh = try sender(url)
            server.expect([.init(503, ["Retry-After": "3"])])
            #expect(
                try await send(fresh)
                    == .retry(.pnsUnavailable, reason: "the token service: status 503", after: .seconds(3))
            )
        }
    }

    @Test("a template for addresses keeps the id out of the host")
    func template() throws {
        let tokenURL = try #require(HTTPURL(ADMSettings.tokenURLDefault))
        func settings(_ sendURL: String) throws -> ADMSettings {
            try ADMSettings(clientID: "a", clientSecret: "b", tokenURL: tokenURL, sendURL: sendURL)
        }
        #expect(try settings(ADMSettings.sendURLDefault).sendsDeliveryID == false)
        #expect(try settings("http://localhost:1/{0}").sendsDeliveryID)
        for bad in ["https://api.amazon.com/x", "https://{0}/x", "https://a.{0}.example/x", "ftp://a/{0}"] {
            #expect(throws: ADMSettings.Failure.self, "\(bad)") { try settings(bad) }
        }
    }
}

import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import PushCredentials
import Testing
import TidingsConformance
import TidingsModels

/// Our Baidu sender: its signed form, and each error code of the reference (section 4.3).
@Suite("Baidu sender")
struct BaiduAnswers {
    private static func refusal(_ code: Int, _ answer: (String) -> TargetAnswer) -> AnswerRow {
        AnswerRow(
            400,
            [:],
            "{\"request_id\":1,\"error_code\":\(code),\"error_msg\":\"words\"}",
            answer("\(code) words")
        )
    }

    static let rows: [AnswerRow] = [
        AnswerRow(200, [:], #"{"request_id":1,"response_params":{"msg_id":2,"send_time":3}}"#, .accepted),
        refusal(30600) { .retry(.pnsServerError, reason: $0, after: nil) },
        refusal(30601) { .refused(.pnsInterfaceError, reason: $0) },
        refusal(30602) { .refused(.invalidNotificationFormat, reason: $0) },
        refusal(30603) { .refused(.invalidCredentials, reason: $0) },
        refusal(30604) { .retry(.throttled, reason: $0, after: .seconds(60)) },
        refusal(30605) { .refused(.pnsInterfaceError, reason: $0) },
        refusal(30606) { .retry(.pnsInterfaceError, reason: $0, after: nil) },
        refusal(30607) { .dead(.expiredChannel, reason: $0, asOf: nil) },
        refusal(30608) { .dead(.badChannel, reason: $0, asOf: nil) },
        AnswerRow(
            200,
            [:],
            "<html>",
            .retry(.pnsInterfaceError, reason: "the answer is not JSON", after: nil)
        ),
        AnswerRow(404, .refused(.pnsInterfaceError, reason: "status 404")),
        AnswerRow(413, .refused(.invalidNotificationSize, reason: "status 413")),
        AnswerRow(429, ["Retry-After": "4"], .retry(.throttled, reason: "status 429", after: .seconds(4))),
        AnswerRow(500, .retry(.pnsServerError, reason: "status 500", after: nil)),
        AnswerRow(503, .retry(.pnsUnavailable, reason: "status 503", after: nil)),
    ]

    private func sender(_ url: HTTPURL, _ clock: WorldClock = WorldClock()) -> BaiduSender {
        BaiduSender(
            BaiduSettings(apiKey: "api", secretKey: "secret", endpoint: url),
            client: HTTPClient(),
            time: clock
        )
    }

    @Test("each answer has its meaning, and only a lost binding is dead")
    func answers() async throws {
        try await ScriptedServer.run { server, url in
            let sender = sender(url)
            for row in Self.rows {
                server.expect([row.response])
                let answer = try await SenderTrial.answer(
                    sender,
                    try SenderTrial.payload(.baidu, #"{"title":"a","description":"b"}"#),
                    "u1-c-1",
                    .baidu
                )
                #expect(answer == row.answer, "\(row.testDescription)")
            }
        }
    }

    @Test(
        "the form: the channel of the handle, the kind of message, and Baidu's signature",
        arguments: [
            (#"{"title":"a","description":"b ~*"}"#, [], "1"), (#"{"message":"b"}"#, [], "0"),
            (#"{"title":"a","description":"b"}"#, [.init("X-Baidu-Message-Type", "0")], "0"),
        ] as [(String, [RegistrationTemplate.Header], String)]
    )
    func request(body: String, headers: [RegistrationTemplate.Header], type: String) async throws {
        try await ScriptedServer.run { server, url in
            let clock = WorldClock()
            server.expect([.init(200, text: "{}")])
            let answer = try await SenderTrial.answer(
                sender(url, clock),
                try SenderTrial.payload(.baidu, body, headers),
                "u1-c-1",
                .baidu
            )
            #expect(answer == .accepted)
            let heard = try #require(server.heard.first)
            #expect(heard.line == "POST /rest/3.0/push/single_device")
            #expect(heard.fields["User-Agent"]?.hasPrefix("BCCS_SDK/3.0") == true)
            #expect(heard.fields["Content-Type"] == "application/x-www-form-urlencoded;charset=utf-8")
            let time = try #require(heard[form: "timestamp"])
            #expect(abs((Int64(time) ?? 0) - clock.now.seconds) <= 60)
            #expect(heard[form: "msg"] == body && heard[form: "msg_type"] == type)
            #expect(heard[form: "channel_id"] == "c-1" && heard[form: "apikey"] == "api")
            // The same in the words of Baidu's PHP program: md5(urlencode(…)).
            let signed =
                "POST\(url.origin)/rest/3.0/push/single_deviceapikey=apichannel_id=c-1msg=\(body)msg_type=\(type)"
                + "timestamp=\(time)secret"
            #expect(heard[form: "sign"] == Self.md5(Self.urlencode(signed)))
        }
    }

    private static func urlencode(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let scalar = Unicode.Scalar(byte)
            if byte < 0x80,
                scalar.properties.isAlphabetic || scalar.properties.numericType != nil
                    || "-_.".unicodeScalars.contains(scalar)
            {
                result.unicodeScalars.append(scalar)
            } else if byte == 0x20 {
                result += "+"
            } else {
                result += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }

    private static func md5(_ text: String) -> String { Hex.encode(Digests.md5(Array(text.utf8))) }

    @Test("MD5 as RFC 1321 lists it")
    func digest() {
        #expect(Self.md5("") == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(Self.md5("message digest") == "f96b697d7cb7938d525a2f31aaf161d0")
    }
}

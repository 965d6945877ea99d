import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import Testing
import TidingsModels

/// Our Mi Push sender: its form, and each code that the reference knows (section 4.4).
@Suite("Mi Push sender")
struct XiaomiAnswers {
    private static func refusal(_ code: Int, _ answer: (String) -> TargetAnswer) -> AnswerRow {
        AnswerRow(
            200,
            [:],
            "{\"result\":\"error\",\"code\":\(code),\"description\":\"words\"}",
            answer("\(code) words")
        )
    }

    static let rows: [AnswerRow] = [
        AnswerRow(200, [:], #"{"result":"ok","code":0,"data":{"id":"x"},"trace_id":"y"}"#, .accepted),
        refusal(20301) { .dead(.badChannel, reason: $0, asOf: nil) },
        refusal(21301) { .refused(.invalidCredentials, reason: $0) },
        refusal(10022) { .retry(.throttled, reason: $0, after: .seconds(60)) },
        // Codes that nobody has told us cost no registration.
        refusal(10017) { .refused(.invalidNotificationFormat, reason: $0) },
        AnswerRow(200, [:], "ok", .retry(.pnsInterfaceError, reason: "the answer has no code", after: nil)),
        AnswerRow(400, .refused(.invalidNotificationFormat, reason: "status 400")),
        AnswerRow(401, .refused(.invalidCredentials, reason: "status 401")),
        AnswerRow(404, .refused(.pnsInterfaceError, reason: "status 404")),
        AnswerRow(413, .refused(.invalidNotificationSize, reason: "status 413")),
        AnswerRow(429, .retry(.throttled, reason: "status 429", after: .seconds(60))),
        AnswerRow(500, .retry(.pnsServerError, reason: "status 500", after: nil)),
        AnswerRow(
            503,
            ["Retry-After": "2"],
            .retry(.pnsUnavailable, reason: "status 503", after: .seconds(2))
        ),
    ]

    private func sender(_ url: HTTPURL, _ package: String? = nil) -> XiaomiSender {
        XiaomiSender(
            XiaomiSettings(appSecret: "secret", endpoint: url, packageName: package),
            client: HTTPClient()
        )
    }

    @Test("each answer has its meaning, and only an invalid target is dead")
    func answers() async throws {
        try await ScriptedServer.run { server, url in
            let sender = sender(url)
            for row in Self.rows {
                server.expect([row.response])
                let answer = try await SenderTrial.answer(
                    sender,
                    try SenderTrial.payload(.xiaomi, #"{"message":"a"}"#),
                    "reg/1+=",
                    .xiaomi
                )
                #expect(answer == row.answer, "\(row.testDescription)")
            }
        }
    }

    @Test(
        "the form: an object of the service's names is the form, any other is the payload",
        arguments: [
            (#"{"message":"a b"}"#, ["payload": #"{"message":"a b"}"#, "pass_through": "1"]),
            (
                #"{"title":"t","description":"d","payload":{"a":1},"notify_id":3,"extra":{"x":"y","n":2}}"#,
                [
                    "title": "t", "description": "d", "payload": #"{"a":1}"#, "notify_id": "3",
                    "extra.x": "y", "extra.n": "2", "pass_through": "0",
                ]
            ),
            (
                #"{"payload":"p","pass_through":0,"time_to_live":60000,"registration_id":"other","topic":"all"}"#,
                ["payload": "p", "pass_through": "0", "time_to_live": "60000"]
            ),
            (
                #"{"payload":"p","restricted_package_name":"own"}"#,
                ["payload": "p", "restricted_package_name": "own", "pass_through": "1"]
            ),
        ]
    )
    func request(body: String, expected: [String: String]) async throws {
        try await ScriptedServer.run { server, url in
            server.expect([.init(200, text: #"{"code":0}"#)])
            let answer = try await SenderTrial.answer(
                sender(url, "net.example"),
                try SenderTrial.payload(.xiaomi, body),
                "reg/1+=",
                .xiaomi
            )
            #expect(answer == .accepted)
            let heard = try #require(server.heard.first)
            #expect(heard.line == "POST /v3/message/regid")
            #expect(heard.fields["Authorization"] == "key=secret")
            var fields: [String: String] = [:]
            for pair in heard.text.split(separator: "&") {
                let name = String(pair.prefix { $0 != "=" })
                #expect(fields[name] == nil, "\(name) stands twice")
                fields[name] = heard[form: name]
            }
            var all = expected
            all["registration_id"] = "reg/1+="
            if all["restricted_package_name"] == nil { all["restricted_package_name"] = "net.example" }
            #expect(fields == all)
        }
    }

    @Test("a member that no form can hold is refused before anything is sent")
    func refused() async throws {
        try await ScriptedServer.run { server, url in
            server.expect([])
            let answer = try await SenderTrial.answer(
                sender(url),
                try SenderTrial.payload(.xiaomi, #"{"title":"t","description":["d"]}"#),
                "reg",
                .xiaomi
            )
            #expect(
                answer
                    == .refused(
                        .invalidNotificationFormat,
                        reason: "'description' is neither text nor a number"
                    )
            )
            #expect(server.requests.isEmpty)
        }
    }
}

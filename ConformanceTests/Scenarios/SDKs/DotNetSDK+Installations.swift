import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// The installations of `Microsoft.Azure.NotificationHubs`.
extension DotNetSDK {
    @Test("installations", arguments: installations)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let installationPath = "/tidings/installations/i-1?\(version)"
    private static let json: HTTPFields = ["Content-Type": "application/json; charset=utf-8"]

    /// With null for what is not set; the channel of a browser as text.
    private static func installation(_ platform: String, _ channel: String, _ more: String = "") -> String {
        "{\"installationId\":\"i-1\",\"userId\":null,\"pushChannel\":\"\(channel)\",\"pushChannelExpired\":null,\"platform\":\"\(platform)\","
            + "\"expirationTime\":null,\"tags\":[\"a\"],\(more)\"templates\":{}}"
    }

    private static let channels: [(name: String, channel: String, platform: Platform, handle: String)] = [
        ("apns", SDKBody.token.lowercased(), .apns, SDKBody.token),
        ("gcm", "g:1", .gcm, "g:1"),
        ("fcmV1", "f:1", .fcmV1, "f:1"),
        ("wns", SDKBody.channel, .wns, SDKBody.channel),
        ("mpns", SDKBody.channel, .mpns, SDKBody.channel),
        ("adm", "amzn1.x", .adm, "amzn1.x"),
        ("baidu", "u1-c1", .baidu, "u1-c1"),
        (
            "browser", #"{\"endpoint\":\"https://push.example/1\",\"p256dh\":\"BPk\",\"auth\":\"x\"}"#,
            .browser,
            "https://push.example/1"
        ),
    ]

    private static let puts: [SDKVector] = channels.map { row in
        SDKVector(
            "put \(row.name)",
            "PUT \(installationPath)",
            json,
            installation(row.name, row.channel),
            [.status(200), .empty, .stored("i-1", row.platform, row.handle)]
        )
    }

    private static let tile =
        #""secondaryTiles":{"plum":{"pushChannel":"https://a.notify.windows.com/2","pushChannelExpired":null,"tags":["plum"],"templates":{}}},"#
    private static let templatePatch =
        #"[{"op":"add","path":"/templates/n","value":"{\"body\":\"{\\\"aps\\\":{\\\"alert\\\":\\\"$(m)\\\"}}\"}"}]"#

    private static let installations: [SDKVector] =
        puts + [
            .init(
                "put wns with a secondary tile",
                "PUT \(installationPath)",
                json,
                installation("wns", SDKBody.channel, tile),
                [.status(200), .empty, .stored("i-1", .wns, SDKBody.channel)]
            ),
            .init(
                "put with EnableTestSend",
                "PUT \(installationPath)&test",
                json,
                installation("apns", "ab12"),
                [.status(200), .empty, .stored("i-1", .apns, "AB12")]
            ),
            .init(
                "patch a tag",
                "PATCH \(installationPath)",
                json,
                #"[{"op":"add","path":"/tags","value":"plum"}]"#,
                after: .installation,
                [.status(200), .empty]
            ),
            .init(
                "patch a template, an object as text",
                "PATCH \(installationPath)",
                json,
                templatePatch,
                after: .installation,
                [
                    .status(200), .empty,
                    .init("the template n") {
                        try await $0.world.hub().installation("i-1")?.templates.map(\.name).sorted() == [
                            "n", "t",
                        ]
                    },
                ]
            ),
            .init(
                "get",
                "GET \(installationPath)",
                after: .installation,
                [
                    .status(200),
                    .body(
                        #"{"installationId":"i-1","pushChannel":"\#(SDKBody.token)","pushChannelExpired":false,"platform":"apns","#,
                        #""expirationTime":"9999-12-31T23:59:59.9999999Z","userId":"pomona","tags":["a"],"templates":{"t":{"body":"#,
                        #""tags":["t"]}}}"#
                    ),
                ]
            ),
            .init("get what is not there", "GET \(installationPath)", [.error(404)]),
            .init(
                "delete",
                "DELETE \(installationPath)",
                after: .installation,
                [.status(204), .empty, .goneInstallation]
            ),
            .init(
                "delete what is not there",
                "DELETE \(installationPath)",
                [.status(204), .empty, .goneInstallation]
            ),
        ]
}

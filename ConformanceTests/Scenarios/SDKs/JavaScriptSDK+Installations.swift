import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// The installations of `@azure/notification-hubs`.
extension JavaScriptSDK {
    @Test("installations", arguments: puts + installations)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let installation = "/tidings/installations/i-1?\(version)"
    private static let json: HTTPFields = ["Content-Type": "application/json"]

    private static let puts: [SDKVector] = [
        ("apns", "\"\(SDKBody.token)\"", Platform.apns, SDKBody.token), ("gcm", "\"g:1\"", .gcm, "g:1"),
        ("fcmv1", "\"f:1\"", .fcmV1, "f:1"), ("wns", "\"\(SDKBody.channel)\"", .wns, SDKBody.channel),
        ("mpns", "\"\(SDKBody.channel)\"", .mpns, SDKBody.channel), ("adm", "\"amzn1.x\"", .adm, "amzn1.x"),
        ("baidu", "\"u1-c1\"", .baidu, "u1-c1"),
        (
            "browser", #"{"endpoint":"https://push.example/1","p256dh":"BPk","auth":"x"}"#, .browser,
            "https://push.example/1"
        ),
        ("xiaomi", "\"m:1\"", .xiaomi, "m:1"),
    ].map { name, channel, platform, handle in
        SDKVector(
            "put \(name)",
            "PUT \(installation)",
            json,
            "{\"installationId\":\"i-1\",\"platform\":\"\(name)\",\"pushChannel\":\(channel),\"tags\":[\"a\"],\"userId\":\"pomona\"}",
            [.status(200), .empty, .stored("i-1", platform, handle)]
        )
    }

    private static let installations: [SDKVector] = [
        .init(
            "patch",
            "PATCH \(installation)",
            ["Content-Type": "application/json-patch+json"],
            #"[{"op":"add","path":"/tags","value":"plum"},{"op":"remove","path":"/userId"}]"#,
            after: .installation,
            [
                .status(200), .empty,
                .init("the changes") {
                    let found = try await $0.world.hub().installation("i-1")
                    return found?.userID == nil && found?.tags.map(\.text) == ["a", "plum"]
                },
            ]
        ),
        .init(
            "patch what is not there",
            "PATCH \(installation)",
            ["Content-Type": "application/json-patch+json"],
            #"[{"op":"add","path":"/tags","value":"plum"}]"#,
            [.error(404)]
        ),
        .init(
            "get",
            "GET \(installation)",
            after: .installation,
            [
                .status(200),
                .body(
                    #"{"installationId":"i-1","pushChannel":"\#(SDKBody.token)","#,
                    #""platform":"apns","expirationTime":"#,
                    #""userId":"pomona","tags":["a"],"templates":{"t":{"body":"#
                ),
            ]
        ),
        .init("get what is not there", "GET \(installation)", [.error(404)]),
        .init(
            "delete",
            "DELETE \(installation)",
            after: .installation,
            [.status(204), .empty, .goneInstallation]
        ),
    ]
}

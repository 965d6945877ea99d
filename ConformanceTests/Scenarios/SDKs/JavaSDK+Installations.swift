import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// The installations of Java's `Notification-Hubs-java-sdk`.
extension JavaSDK {
    @Test("installations", arguments: puts + installations)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let installation = "/tidings/installations/i-1?\(version)"
    private static let json: HTTPFields = ["Content-Type": "application/json"]

    private static let puts: [SDKVector] = [
        ("apns", SDKBody.token, Platform.apns, SDKBody.token), ("gcm", "g:1", .gcm, "g:1"),
        ("fcmv1", "f:1", .fcmV1, "f:1"), ("wns", SDKBody.channel, .wns, SDKBody.channel),
        ("mpns", SDKBody.channel, .mpns, SDKBody.channel), ("adm", "amzn1.x", .adm, "amzn1.x"),
        ("baidu", "u1-c1", .baidu, "u1-c1"),
        (
            "browser", #"{\"endpoint\":\"https://push.example/1\",\"p256dh\":\"BPk\",\"auth\":\"x\"}"#,
            .browser,
            "https://push.example/1"
        ),
    ].map { name, channel, platform, handle in
        SDKVector(
            "put \(name)",
            "PUT \(installation)",
            json,
            "{\"installationId\":\"i-1\",\"pushChannel\":\"\(channel)\",\"pushChannelExpired\":false,\"platform\":\"\(name)\",\"tags\":[\"a\"],"
                + "\"templates\":{\"t\":{\"body\":\"\(template(platform))\",\"headers\":{\(platform == .wns ? #""X-WNS-Type":"wns/toast""# : "")},\"tags\":[\"x\"]}}}",
            [.status(200), .empty, .stored("i-1", platform, handle)]
        )
    }

    private static func template(_ platform: Platform) -> String {
        let text =
            switch platform {
            case .wns: SDKBody.toastTemplate
            case .mpns: SDKBody.phoneTemplate
            case .fcmV1: SDKBody.googleV1Template
            default: SDKBody.googleTemplate
            }
        return text.replacing("\"", with: "\\\"")
    }

    private static let installations: [SDKVector] = [
        .init(
            "patch",
            "PATCH \(installation)",
            json,
            #"[{"op":"add","path":"/tags","value":"bar"},{"op":"remove","path":"/tags/a"},{"op":"replace","path":"/userId","value":"plum"}]"#,
            after: .installation,
            [
                .status(200), .empty,
                .init("the changes") {
                    let found = try await $0.world.hub().installation("i-1")
                    return found?.userID == "plum" && found?.tags.map(\.text) == ["bar"]
                },
            ]
        ),
        .init(
            "get",
            "GET \(installation)",
            after: .installation,
            [
                .status(200),
                .body(
                    #"{"installationId":"i-1","pushChannel":"\#(SDKBody.token)","pushChannelExpired":false,"platform":"apns","#,
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

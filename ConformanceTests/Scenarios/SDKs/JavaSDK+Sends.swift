import HTTPMessages
import Testing

/// The sends of Java's `Notification-Hubs-java-sdk`, and what became of them.
extension JavaSDK {
    @Test("sends", arguments: native + sends)
    func send(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let messages = "POST /tidings/messages?\(version)"
    private static let sent: [SDKExpectation] = [.status(201), .location("/tidings/messages"), .empty]
    private static let json = "application/json;charset=utf-8"
    /// Tomorrow, which it sends unasked, in a 12-hour form.
    private static let appleFields: HTTPFields = [
        "ServiceBusNotification-Format": "apple", "ServiceBusNotification-Apns-Expiry": "12/01/2030 12:33:26",
        "Content-Type": json,
    ]

    private static func fields(_ format: String, _ more: HTTPFields = [:], type: String = json) -> HTTPFields
    {
        ["ServiceBusNotification-Format": format] + more + ["Content-Type": type]
    }

    private static let formats: [(name: String, fields: HTTPFields, body: String, target: String)] = [
        ("apple", appleFields, SDKBody.apple, "apple"),
        // Own headers take the place of the format: a mistake of the SDK.
        (
            "apple with headers", ["apns-push-type": "alert", "apns-priority": "10", "Content-Type": json],
            SDKBody.apple, "apple"
        ),
        ("gcm", fields("gcm"), SDKBody.google, "gcm"),
        ("fcmv1", fields("fcmv1"), SDKBody.googleV1, "fcmv1"),
        (
            "windows", fields("windows", ["X-WNS-Type": "wns/toast"], type: "application/xml"), SDKBody.toast,
            "windows"
        ),
        (
            "windows, raw", fields("windows", ["X-WNS-Type": "wns/raw"], type: "application/octet-stream"),
            "plums", "windows"
        ),
        (
            "windowsphone",
            fields(
                "windowsphone",
                ["X-WindowsPhone-Target": "toast", "X-NotificationClass": "2"],
                type: "application/xml;charset=utf-8"
            ), SDKBody.phoneToast, "windowsphone"
        ),
        ("adm", fields("adm"), SDKBody.google, "adm"), ("baidu", fields("baidu"), SDKBody.baidu, "baidu"),
        ("browser", fields("browser"), SDKBody.flat, "browser"),
        ("template", fields("template"), SDKBody.flat, "template"),
    ]

    private static let native: [SDKVector] = formats.map { row in
        SDKVector("send \(row.name)", messages, row.fields, row.body, sent + [.target(row.target)])
    }

    private static let boundary = "nh-batch-multipart-boundary"

    private static let sends: [SDKVector] = [
        .init(
            "send to any of a set of tags",
            messages,
            appleFields + ["ServiceBusNotification-Tags": "a || b"],
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
        .init(
            "send to a tag expression",
            messages,
            appleFields + ["ServiceBusNotification-Tags": "(a && !c) || d"],
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
        .init(
            "send direct",
            "\(messages)&direct",
            appleFields + ["ServiceBusNotification-DeviceHandle": SDKBody.token],
            SDKBody.apple,
            sent + [.target("apple")]
        ),
        .init(
            "send a batch",
            "POST /tidings/messages/$batch?\(version)&direct",
            [
                "ServiceBusNotification-Format": "apple",
                "Content-Type": "multipart/mixed; boundary=\(boundary)",
            ],
            SDKBody.batch(boundary: boundary, type: ""),
            sent + [.target("apple")]
        ),
        .init(
            "schedule",
            "POST /tidings/schedulednotifications?\(version)",
            appleFields + ["ServiceBusNotification-ScheduleTime": "{time}"],
            SDKBody.apple,
            [.status(201), .location("/tidings/schedulednotifications"), .empty]
        ),
        .init(
            "cancel",
            "DELETE /tidings/schedulednotifications/{id}?\(version)",
            after: .scheduled,
            [.status(200), .empty]
        ),
        .init("cancel nothing", "DELETE /tidings/schedulednotifications/0-1-2?\(version)", [.status(404)]),
        .init(
            "telemetry",
            "GET /tidings/messages/{id}?\(version)",
            after: .sent,
            [
                .status(200),
                .body(
                    "<NotificationDetails",
                    "<NotificationId>{id}</NotificationId>",
                    "<State>Completed</State>",
                    "<EnqueueTime>",
                    "<StartTime>",
                    "<EndTime>",
                    "<TargetPlatforms>apple</TargetPlatforms>",
                    "<ApnsOutcomeCounts><Outcome><Name>",
                    "</Name><Count>1</Count></Outcome></ApnsOutcomeCounts>"
                ),
            ]
        ),
    ]
}

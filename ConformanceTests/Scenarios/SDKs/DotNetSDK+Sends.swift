import HTTPMessages
import TidingsConformance
import Testing

/// The sends of `Microsoft.Azure.NotificationHubs`, and what became of them.
extension DotNetSDK {
    @Test("sends", arguments: native + sends)
    func send(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    @Test("what is no send, with EnableTestSend", arguments: ignored)
    func ignored(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let messages = "POST /tidings/messages?\(version)"
    private static let sent: [SDKExpectation] = [.status(201), .location("/tidings/messages"), .empty]

    private static func fields(_ format: String, _ more: HTTPFields = [:], type: String) -> HTTPFields {
        ["ServiceBusNotification-Format": format] + more + ["Content-Type": type]
    }

    private static let json = "application/json"
    private static let apple = fields("apple", type: json)
    /// What it writes before XML, though the bytes are UTF-8.
    private static let declaration = "<?xml version=\"1.0\" encoding=\"utf-16\"?>"

    private static let formats: [(name: String, fields: HTTPFields, body: String, target: String)] = [
        ("apple", fields("apple", ["apns-push-type": "alert"], type: json), SDKBody.apple, "apple"),
        (
            "apple with an expiry and a priority",
            fields(
                "apple",
                ["ServiceBusNotification-Apns-Expiry": "12/24/2030 22:20:30", "X-Apns-Priority": "10"],
                type: json
            ), SDKBody.apple, "apple"
        ),
        ("gcm", fields("gcm", type: json), SDKBody.google, "gcm"),
        ("fcmV1", fields("fcmv1", type: json), SDKBody.googleV1, "fcmv1"),
        (
            "windows", fields("windows", ["X-WNS-Type": "wns/toast"], type: "application/xml"),
            declaration + SDKBody.toast, "windows"
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
                type: "application/xml"
            ), declaration + SDKBody.phoneToast, "windowsphone"
        ),
        ("adm", fields("adm", type: json), SDKBody.google, "adm"),
        (
            "baidu",
            fields("baidu", ["X-Baidu-Message-Type": "1"], type: "application/x-www-form-urlencoded"),
            SDKBody.baidu, "baidu"
        ),
        ("browser", fields("browser", type: json), SDKBody.flat, "browser"),
        ("template", fields("template", type: json), SDKBody.flat, "template"),
    ]

    private static let native: [SDKVector] = formats.map { row in
        SDKVector("send \(row.name)", messages, row.fields, row.body, sent + [.target(row.target)])
    }

    private static let boundary = "nh-batch-multipart-boundary"

    private static let sends: [SDKVector] = [
        .init(
            "send to tags",
            messages,
            fields("apple", ["ServiceBusNotification-Tags": "a||b"], type: json),
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
        .init(
            "send to an installation",
            messages,
            fields("apple", ["ServiceBusNotification-Tags": "$InstallationId:{i-1}"], type: json),
            SDKBody.apple,
            after: .installation,
            sent + [.target("apple")]
        ),
        .init(
            "send direct",
            "\(messages)&direct",
            fields("apple", ["ServiceBusNotification-DeviceHandle": SDKBody.token], type: json),
            SDKBody.apple,
            sent + [.target("apple")]
        ),
        .init(
            "send a batch",
            "POST /tidings/messages/$batch?\(version)&direct",
            fields("apple", type: "multipart/mixed; boundary=\"\(boundary)\""),
            SDKBody.batch(boundary: boundary, type: "Content-Type: application/json\r\n"),
            sent + [.target("apple")]
        ),
        .init(
            "schedule",
            "POST /tidings/schedulednotifications?\(version)",
            fields("apple", ["ServiceBusNotification-ScheduleTime": "{time}"], type: json),
            SDKBody.apple,
            [.status(201), .location("/tidings/schedulednotifications"), .empty]
        ),
        .init(
            "cancel",
            "DELETE /tidings/schedulednotifications/{id}?\(version)",
            after: .scheduled,
            [.status(200), .empty]
        ),
        .init(
            "send with EnableTestSend, to nobody",
            "\(messages)&test",
            fields("template", type: json),
            "{}",
            [
                .status(201),
                .isBody(
                    "<NotificationOutcome xmlns=\"\(SDKBody.connect)\" xmlns:i=\"\(SDKBody.instance)\"><Success>0</Success><Failure>0</Failure>"
                        + "<Results i:nil=\"true\"/></NotificationOutcome>"
                ),
            ]
        ),
        .init(
            "send with EnableTestSend",
            "\(messages)&test",
            apple,
            SDKBody.apple,
            after: .registration,
            [
                .status(201),
                .body(
                    "<Success>0</Success><Failure>1</Failure><Results><RegistrationResult><ApplicationPlatform>apple</ApplicationPlatform>",
                    "<PnsHandle>\(SDKBody.token)</PnsHandle><RegistrationId>{id}</RegistrationId><Outcome>",
                    "</Outcome></RegistrationResult></Results></NotificationOutcome>"
                ),
            ]
        ),
        .init(
            "telemetry",
            "GET /tidings/messages/{id}?\(version)",
            after: .sent,
            [
                .status(200),
                .body(
                    "<NotificationDetails xmlns=\"\(SDKBody.connect)\"",
                    "<NotificationId>{id}</NotificationId><Location>sb://",
                    "<State>Completed</State><EnqueueTime>",
                    "<StartTime>",
                    "<EndTime>",
                    "<NotificationBody>\(SDKBody.apple)</NotificationBody><Tags>a || b</Tags><TargetPlatforms>apple</TargetPlatforms>",
                    "<ApnsOutcomeCounts><Outcome><Name>",
                    "</Name><Count>1</Count></Outcome></ApnsOutcomeCounts>"
                ),
            ]
        ),
        .init("telemetry of nothing", "GET /tidings/messages/0-1-2?\(version)", [.error(404)]),
        .init(
            "feedback container",
            "GET /tidings/feedbackcontainer?\(version)",
            [
                .status(200),
                .init("an address alone") { HTTPURL($0.answer.body)?.scheme == "https" },
            ]
        ),
    ]
    /// The SDK then adds the parameter to every request, and only sends may look at it.
    private static let ignored: [SDKVector] = [
        .init(
            "patch an installation",
            "PATCH /tidings/installations/i-1?\(version)&test",
            ["Content-Type": "application/json; charset=utf-8"],
            #"[{"op":"add","path":"/tags","value":"plum"}]"#,
            after: .installation,
            [.status(200), .empty]
        ),
        .init(
            "get an installation",
            "GET /tidings/installations/i-1?\(version)&test",
            after: .installation,
            [.status(200), .body(#"{"installationId":"i-1""#)]
        ),
        .init(
            "delete an installation",
            "DELETE /tidings/installations/i-1?\(version)&test",
            after: .installation,
            [.status(204), .empty, .goneInstallation]
        ),
        .init(
            "list registrations",
            "GET /tidings/registrations?\(version)&test&$top=100",
            after: .registrations,
            [.feed("FcmV1RegistrationDescription", count: 3)]
        ),
        .init(
            "delete a registration",
            "DELETE /tidings/registrations/{id}?\(version)&test",
            ["If-Match": "*"],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init("list jobs", "GET /tidings/jobs?\(version)&test", [.status(200), .body("<feed", "</feed>")]),
    ]
}

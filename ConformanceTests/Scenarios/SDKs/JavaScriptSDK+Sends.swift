import HTTPMessages
import Testing

/// The rest of what `@azure/notification-hubs` does: sends and jobs.
extension JavaScriptSDK {
    @Test("sends", arguments: native + sends)
    func send(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    @Test("jobs", arguments: jobs)
    func job(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    // MARK: Sends

    private static let messages = "POST /tidings/messages/?\(version)"
    private static let sent: [SDKExpectation] = [.status(201), .location("/tidings/messages"), .empty]
    private static let json = "application/json;charset=utf-8"

    private static func fields(_ format: String, _ more: HTTPFields = [:], type: String = json) -> HTTPFields
    {
        ["Content-Type": type, "ServiceBusNotification-Format": format] + more
    }

    private static let formats: [(name: String, fields: HTTPFields, body: String, target: String)] = [
        (
            "apple", fields("apple", ["apns-push-type": "liveactivity", "apns-priority": "5"]), SDKBody.apple,
            "apple"
        ),
        ("gcm", fields("gcm"), SDKBody.google, "gcm"), ("fcmv1", fields("fcmv1"), SDKBody.googleV1, "fcmv1"),
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
        ("adm", fields("adm"), SDKBody.google, "adm"),
        ("baidu", fields("baidu", ["X-Baidu-Message-Type": "0"]), SDKBody.baidu, "baidu"),
        ("browser", fields("browser"), SDKBody.flat, "browser"),
        ("xiaomi", fields("xiaomi", type: "application/json"), SDKBody.flat, "xiaomi"),
        ("template", fields("template"), SDKBody.flat, "template"),
    ]

    private static let native: [SDKVector] = formats.map { row in
        SDKVector("broadcast \(row.name)", messages, row.fields, row.body, sent + [.target(row.target)])
    }

    private static let boundary = "nh-boundary-5f0c7c1e-6f3b-4c62-9f1e-0f6f4fd4f001"
    private static let scheduledTo: [SDKExpectation] = [
        .status(201), .location("/tidings/schedulednotifications"), .empty,
    ]

    private static let sends: [SDKVector] = [
        .init(
            "send to a tag expression",
            messages,
            fields("apple", ["ServiceBusNotification-Tags": "a&&!c"]),
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
        .init(
            "send direct",
            "\(messages)&direct=true",
            fields("apple", ["ServiceBusNotification-DeviceHandle": SDKBody.token]),
            SDKBody.apple,
            sent + [.target("apple")]
        ),
        .init(
            "send direct to a browser, whose keys are fields",
            "\(messages)&direct=true",
            fields(
                "browser",
                [
                    "ServiceBusNotification-DeviceHandle": "https://push.example/1", "Auth": "x",
                    "P256DH": "BPk",
                ]
            ),
            SDKBody.flat,
            sent + [.target("browser")]
        ),
        // Blanks around the equals sign, and no last line end.
        .init(
            "send a batch",
            "POST /tidings/messages/$batch?\(version)&direct=true",
            fields("apple", type: "multipart/mixed; boundary = \"\(boundary)\""),
            String(SDKBody.batch(boundary: boundary, type: "Content-Type: application/json\r\n").dropLast()),
            sent + [.target("apple")]
        ),
        .init(
            "schedule to a tag",
            "POST /tidings/schedulednotifications/?\(version)",
            fields(
                "apple",
                ["ServiceBusNotification-Tags": "a", "ServiceBusNotification-ScheduleTime": "{time}.000Z"]
            ),
            SDKBody.apple,
            scheduledTo
        ),
        .init(
            "schedule a broadcast",
            "POST /tidings/schedulednotifications/?\(version)",
            fields("template", ["ServiceBusNotification-ScheduleTime": "{time}.000Z"]),
            SDKBody.flat,
            scheduledTo
        ),
        .init(
            "cancel",
            "DELETE /tidings/schedulednotifications/{id}?\(version)",
            after: .scheduled,
            [.status(200), .empty]
        ),
        .init(
            "test send to nobody",
            "\(messages)&test=true",
            fields("template"),
            "{}",
            [
                .status(201),
                .body(
                    "<NotificationOutcome",
                    "<Success>0</Success><Failure>0</Failure><Results i:nil=\"true\"/>"
                ),
            ]
        ),
        .init(
            "test send",
            "\(messages)&test=true",
            fields("apple", ["ServiceBusNotification-Tags": "a"]),
            SDKBody.apple,
            after: .registration,
            [
                .status(201),
                .body(
                    "<NotificationOutcome",
                    "<Success>0</Success><Failure>1</Failure><Results><RegistrationResult>",
                    "<ApplicationPlatform>apple</ApplicationPlatform><PnsHandle>\(SDKBody.token)</PnsHandle><RegistrationId>{id}</RegistrationId><Outcome>"
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
                    "<NotificationDetails",
                    "<NotificationId>{id}</NotificationId>",
                    "<Location>",
                    "<State>Completed</State>",
                    "<TargetPlatforms>apple</TargetPlatforms>",
                    "<ApnsOutcomeCounts><Outcome><Name>",
                    "</Name><Count>1</Count>"
                ),
            ]
        ),
        .init(
            "feedback container",
            "GET /tidings/feedbackcontainer?\(version)",
            [.status(200), .init("an address alone") { HTTPURL($0.answer.body)?.scheme == "https" }]
        ),
        // The SDK shows the Detail.
        .init(
            "send what is no JSON",
            messages,
            fields("apple"),
            "plums",
            [.error(400), .body("<Detail>", ".TrackingId:", ",TimeStamp:", "</Detail></Error>")]
        ),
    ]

    // MARK: Jobs

    private static func submit(_ kind: String, _ more: String, read: String) -> SDKVector {
        SDKVector(
            "submit \(kind)",
            "POST /tidings/jobs?\(version)",
            ["Content-Type": "application/atom+xml;type=entry;charset=utf-8"],
            "<entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\"><NotificationHubJob xmlns=\"\(SDKBody.connect)\" "
                + "xmlns:i=\"\(SDKBody.instance)\"><Type>\(kind)</Type><OutputContainerUri><![CDATA[{container}]]></OutputContainerUri>\(more)"
                + "</NotificationHubJob></content></entry>",
            after: .container,
            // A dictionary without pairs makes it throw.
            [
                .status(201), .omits("OutputProperties"), .omits("InputProperties"),
                .body(
                    "<NotificationHubJob xmlns=",
                    "<JobId>",
                    "<Type>\(kind)</Type>",
                    "<OutputContainerUri>{containerXML}</OutputContainerUri>\(read)"
                ),
            ]
        )
    }

    private static let done = SDKExpectation.body(
        "<JobId>{id}</JobId>",
        "<Type>ExportRegistrations</Type><Status>Completed</Status><OutputContainerUri>",
        "<OutputProperties xmlns:d3p1=",
        "<d3p1:KeyValueOfstringstring><d3p1:Key>OutputFilePath</d3p1:Key><d3p1:Value>tidings/{id}/Output.txt</d3p1:Value>"
    )

    private static let jobs: [SDKVector] =
        [submit("ExportRegistrations", "", read: "")]
        + ["Create", "Update", "Delete", "Upsert"].map {
            submit(
                "Import\($0)Registrations",
                "<ImportFileUri><![CDATA[{file}]]></ImportFileUri>",
                read: "<ImportFileUri>{fileXML}</ImportFileUri>"
            )
        } + [
            .init("get", "GET /tidings/jobs/{id}?\(version)", after: .job, [.status(200), done]),
            .init(
                "list",
                "GET /tidings/jobs?\(version)",
                after: .job,
                [.status(200), .body("<feed", "<entry>"), done]
            ),
        ]
}

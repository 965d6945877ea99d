import HTTPMessages
import Testing

/// The jobs of Java's `Notification-Hubs-java-sdk`, and the hubs of its `NamespaceManager`.
extension JavaSDK {
    @Test("jobs", arguments: jobs)
    func job(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    @Test("hubs", arguments: hubs)
    func hub(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    // MARK: Jobs

    private static let jobType: HTTPFields = ["Content-Type": "application/atom+xml;type=entry;charset=utf-8"]

    /// Its whole content type as the type of the content, and addresses in CDATA.
    private static func submit(_ kind: String, _ more: String, read: String) -> SDKVector {
        SDKVector(
            "submit \(kind)",
            "POST /tidings/jobs?\(version)",
            jobType,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/atom+xml;type=entry;charset=utf-8\">"
                + "<NotificationHubJob xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\"><Type>\(kind)</Type>"
                + "<OutputContainerUri><![CDATA[{container}]]></OutputContainerUri>\(more)</NotificationHubJob></content></entry>",
            after: .container,
            [
                .status(201),
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
        "<Type>ExportRegistrations</Type><Status>Completed</Status>",
        "<OutputProperties xmlns:d3p1=",
        "<d3p1:KeyValueOfstringstring><d3p1:Key>OutputFilePath</d3p1:Key><d3p1:Value>tidings/{id}/Output.txt</d3p1:Value>"
    )

    private static let jobs: [SDKVector] =
        [submit("ExportRegistrations", "", read: "")]
        + ["Create", "Update", "Delete"].map {
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

    // MARK: Hubs

    /// `NamespaceManager`, of an older version.
    private static let garden = "/garden?api-version=2014-09"
    private static let list = "GET /$Resources/NotificationHubs/?api-version=2014-09&$skip=0&$top=2147483647"
    private static let hubEntry =
        "<content type=\"application/xml\"><NotificationHubDescription xmlns=\"\(SDKBody.connect)\""

    private static func description(_ members: String) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\">"
            + "<NotificationHubDescription xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\">\(members)</NotificationHubDescription></content></entry>"
    }

    private static let credential = SDKExpectation.body(
        "<title type=\"text\">garden</title>",
        hubEntry,
        "<AdmCredential><Properties>",
        "<Name>ClientId</Name><Value>amzn1</Value>"
    )
    private static let adm =
        "<AdmCredential><Properties><Property><Name>ClientId</Name><Value>amzn1</Value></Property>"
        + "<Property><Name>ClientSecret</Name><Value>s</Value></Property></Properties></AdmCredential>"

    private static let hubs: [SDKVector] = [
        .init(
            "create",
            "PUT \(garden)",
            jobType,
            description(adm),
            isNamespace: true,
            [.status(201), credential]
        ),
        .init(
            "update",
            "PUT \(garden)",
            jobType + ["If-Match": "*"],
            description(adm),
            after: .garden,
            isNamespace: true,
            [.status(200), credential]
        ),
        .init(
            "get",
            "GET \(garden)",
            after: .garden,
            isNamespace: true,
            [.status(200), .body("<title type=\"text\">garden</title>", hubEntry)]
        ),
        // The parser takes no feed for an entry: 404, not the original's 200 with an empty feed.
        .init("get what is not there", "GET \(garden)", isNamespace: true, [.status(404)]),
        .init(
            "list",
            list,
            after: .garden,
            isNamespace: true,
            [
                .status(200),
                .body(
                    "<feed",
                    "<title type=\"text\">garden</title>",
                    hubEntry,
                    "<title type=\"text\">tidings</title>",
                    hubEntry
                ),
            ]
        ),
        .init("list with a hub's own key", list, [.status(401)]),
        .init("delete", "DELETE \(garden)", after: .garden, isNamespace: true, [.status(200), .empty]),
        .init("delete what is not there", "DELETE \(garden)", isNamespace: true, [.status(404)]),
    ]
}

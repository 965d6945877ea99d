import HTTPMessages
import Testing

/// The jobs of `Microsoft.Azure.NotificationHubs`, and the hubs of its `NamespaceManager`.
extension DotNetSDK {
    @Test("jobs", arguments: jobs)
    func job(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    @Test("hubs", arguments: hubs)
    func hub(_ vector: SDKVector) async throws { try await vector.run(as: Self.namespace) }

    // MARK: Jobs

    /// Addresses as escaped text.
    private static func job(_ kind: String, _ more: String) -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\"><NotificationHubJob xmlns=\"\(SDKBody.connect)\" "
            + "xmlns:i=\"\(SDKBody.instance)\"><Type>\(kind)</Type><OutputContainerUri>{containerXML}</OutputContainerUri>\(more)</NotificationHubJob></content></entry>"
    }

    private static func submit(_ kind: String, _ more: String = "") -> SDKVector {
        SDKVector(
            "submit \(kind)",
            "POST /tidings/jobs?\(version)",
            atom,
            job(kind, more),
            after: .container,
            [
                .status(201), .location("/tidings/jobs"),
                .field("Content-Type", "application/atom+xml; type=entry; charset=utf-8"),
                .body(
                    "<entry xmlns=\"\(SDKBody.atom)\">",
                    "<content type=\"application/xml\"><NotificationHubJob xmlns=",
                    "<JobId>",
                    "<Type>\(kind)</Type>",
                    "<OutputContainerUri>{containerXML}</OutputContainerUri>\(more)",
                    "<CreatedAt>",
                    "<UpdatedAt>"
                ),
            ]
        )
    }

    private static let importFile = "<ImportFileUri>{fileXML}</ImportFileUri>"
    private static let done = SDKExpectation.body(
        "<NotificationHubJob xmlns=",
        "<JobId>{id}</JobId><Progress>100</Progress><Type>ExportRegistrations</Type><Status>Completed</Status>",
        "<OutputContainerUri>{containerXML}</OutputContainerUri><OutputProperties xmlns:d3p1=\"http://schemas.microsoft.com/2003/10/Serialization/Arrays\">",
        "<d3p1:KeyValueOfstringstring><d3p1:Key>OutputFilePath</d3p1:Key><d3p1:Value>tidings/{id}/Output.txt</d3p1:Value>",
        "<CreatedAt>",
        "<UpdatedAt>"
    )

    private static let jobs: [SDKVector] =
        [submit("ExportRegistrations")]
        + ["Create", "Update", "Delete", "Upsert"].map { submit("Import\($0)Registrations", importFile) } + [
            .init("get", "GET /tidings/jobs/{id}?\(version)", after: .job, [.status(200), done]),
            .init("get what is not there", "GET /tidings/jobs/1?\(version)", [.error(404)]),
            .init(
                "list",
                "GET /tidings/jobs?\(version)",
                after: .job,
                [.status(200), .body("<feed xmlns=\"\(SDKBody.atom)\">", "<entry>"), done]
            ),
        ]

    // MARK: Hubs

    /// `NamespaceManager`, which sends the version as a field, too.
    private static let namespace = SDK(
        style: .dotNet,
        fields: ["x-ms-version": "2020-06"] + sdk.fields,
        expectations: sdk.expectations
    )

    private static func description(_ members: String) -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\"><NotificationHubDescription xmlns:i=\"\(SDKBody.instance)\" "
            + "xmlns=\"\(SDKBody.connect)\">\(members)</NotificationHubDescription></content></entry>"
    }

    private static let garden = "/garden?\(version)"
    private static let isEntry: [SDKExpectation] = [
        .field("Content-Type", "application/atom+xml; type=entry; charset=utf-8"),
        .body(
            "<entry xmlns=\"\(SDKBody.atom)\">",
            "<title type=\"text\">garden</title>",
            "<content type=\"application/xml\"><NotificationHubDescription xmlns="
        ),
    ]

    private static let hubs: [SDKVector] = [
        .init(
            "create",
            "PUT \(garden)",
            [:],
            description("<RegistrationTtl>P90D</RegistrationTtl><UserMetadata>plums</UserMetadata>"),
            isNamespace: true,
            isEntry + [
                .status(201),
                .body(
                    "<RegistrationTtl>P90D</RegistrationTtl><AuthorizationRules><AuthorizationRule i:type=\"SharedAccessAuthorizationRule\">",
                    "<KeyName>DefaultListenSharedAccessSignature</KeyName><PrimaryKey>",
                    "<KeyName>DefaultFullSharedAccessSignature</KeyName><PrimaryKey>",
                    "<UserMetadata>plums</UserMetadata>"
                ),
            ]
        ),
        .init(
            "create what is there",
            "PUT \(garden)",
            [:],
            description(""),
            after: .garden,
            isNamespace: true,
            [.error(409)]
        ),
        .init("get", "GET \(garden)", after: .garden, isNamespace: true, isEntry + [.status(200)]),
        .init("get what is not there", "GET \(garden)", isNamespace: true, [.error(404)]),
        .init(
            "update",
            "PUT \(garden)",
            ["If-Match": "*"],
            description("<UserMetadata>pears</UserMetadata>"),
            after: .garden,
            isNamespace: true,
            isEntry + [
                .status(200), .body("<UserMetadata>pears</UserMetadata>", "<Status>false</Status>"),
                .omits("<published>"),
            ]
        ),
        .init("delete", "DELETE \(garden)", after: .garden, isNamespace: true, [.status(200), .empty]),
        .init("delete what is not there", "DELETE \(garden)", isNamespace: true, [.error(404)]),
        .init(
            "list",
            "GET /",
            after: .garden,
            isNamespace: true,
            [
                .status(200), .field("Content-Type", "application/atom+xml; type=feed; charset=utf-8"),
                .body(
                    "<feed",
                    "<entry><id>",
                    "<title type=\"text\">garden</title>",
                    "<title type=\"text\">tidings</title>"
                ),
            ]
        ),
    ]
}

import HTTPMessages
import Testing

/// The wire behaviour of node's `azure-sb`, as requests of our own (protocol reference, section 11.9).
///
/// The last release speaks 2016-07 and signs the whole address; older ones speak 2013-07 and sign the hub's.
@Suite("The node azure-sb SDK", .serialized)
struct NodeSDK {
    static let last = SDK(style: .java, fields: ["Accept-Charset": "UTF-8"])

    @Test("registrations", arguments: created + registrations)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.last) }

    // MARK: Registrations

    static let version = "api-version=2016-07"
    private static let id = "/tidings/registrations/{id}?\(version)"
    /// Registrations and installations go with a content type that is empty.
    static let noType: HTTPFields = ["Content-Type": ""]

    /// The base type with `i:type`, behind the date.
    private static func entry(_ root: String, _ members: String) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><entry xmlns=\"\(SDKBody.atom)\"><updated>2027-01-01T00:00:00.000Z</updated>"
            + "<content type=\"application/xml\"><RegistrationDescription xmlns:i=\"\(SDKBody.instance)\" i:type=\"\(root)\" xmlns=\"\(SDKBody.connect)\">"
            + "\(members)</RegistrationDescription></content></entry>"
    }

    private static let appleTemplate = SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate)

    private static let descriptions: [SDKDescription] = [
        .init("Apple", SDKBody.deviceToken),
        .init("Gcm", "<GcmRegistrationId>g:1</GcmRegistrationId>"),
        .init("Windows", SDKBody.channelURI),
        .init("Mpns", SDKBody.channelURI),
        .init("AppleTemplate", appleTemplate, read: appleTemplate + "<Expiry i:nil=\"true\"/><ApnsHeaders/>"),
        .init(
            "GcmTemplate",
            "<GcmRegistrationId>g:1</GcmRegistrationId>" + SDKBody.template(SDKBody.googleTemplate)
        ),
        .init(
            "WindowsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.toastTemplate) + SDKBody.toastHeader
        ),
        .init(
            "MpnsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.phoneTemplate) + SDKBody.phoneHeaders
        ),
    ]

    private static let created: [SDKVector] = descriptions.map { description in
        SDKVector(
            "create \(description.type)",
            "POST /tidings/registrations/?\(version)",
            noType,
            entry(description.root, "<Tags>a,b</Tags>" + description.written),
            [.entry(description.root, "<Tags>a,b</Tags>" + description.read)]
        )
    }

    static let apple = "AppleRegistrationDescription"
    static let tagged = "<Tags>c</Tags>" + SDKBody.deviceToken
    static let fcmV1 = "FcmV1RegistrationDescription"

    private static let registrations: [SDKVector] = [
        .init(
            "create a registration id",
            "POST /tidings/registrationids?\(version)",
            noType,
            "",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        .init(
            "create or update",
            "PUT \(id)",
            noType,
            entry(apple, tagged),
            after: .registrationID,
            [.entry(apple, tagged)]
        ),
        .init(
            "update",
            "PUT \(id)",
            noType + ["If-Match": "1"],
            entry(apple, tagged),
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update any version",
            "PUT \(id)",
            noType + ["If-Match": "*"],
            entry(apple, tagged),
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update a version that is gone",
            "PUT \(id)",
            noType + ["If-Match": "7"],
            entry(apple, tagged),
            after: .registration,
            [.error(412)]
        ),
        .init(
            "get",
            "GET \(id)",
            noType,
            after: .registration,
            [.entry(apple, "<Tags>a,b</Tags>" + SDKBody.deviceToken)]
        ),
        .init("get what is not there", "GET \(id)", noType, after: .registrationID, [.error(404)]),
        .init(
            "delete",
            "DELETE \(id)",
            noType + ["If-Match": "*"],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "list all",
            "GET /tidings/registrations/?\(version)",
            noType,
            after: .registrations,
            [.feed(fcmV1, count: 3)]
        ),
        .init(
            "list with $top and $skip",
            "GET /tidings/registrations/?%24top=2&%24skip=1&\(version)",
            noType,
            after: .registrations,
            [.feed(fcmV1, count: 2)]
        ),
        .init(
            "list by tag",
            "GET /tidings/tags/a/registrations/?%24top=2&%24skip=2&\(version)",
            noType,
            after: .registrations,
            [.feed(fcmV1, count: 1)]
        ),
        .init(
            "list by device token",
            "GET /tidings/registrations/?%24filter=DeviceToken%20eq%20%27\(SDKBody.token)%27&\(version)",
            noType,
            after: .registration,
            [.feed(apple, count: 1)]
        ),
    ]
}

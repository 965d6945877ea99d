import HTTPMessages
import TidingsModels
import Testing

/// The wire behaviour of Android's `com.microsoft.windowsazure.messaging`, as requests of our own (protocol reference, section 11.6).
@Suite("The Android legacy SDK", .serialized)
struct AndroidLegacySDK {
    /// The content type stands also where there is no body.
    private static let sdk = SDK(
        style: .android,
        fields: [
            "Content-Type": "application/atom+xml",
            "User-Agent": "NOTIFICATIONHUBS/2014-09 (api-origin=AndroidSdkFcmV1; os=Android; os_version=13;)",
        ]
    )

    @Test("registrations", arguments: natives + templates + registrations)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    @Test("filters of each platform", arguments: filters)
    func filter(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let version = "api-version=2014-09"
    private static let id = "/tidings/Registrations/{id}?\(version)"
    private static let never = "9999-12-31T23:59:59.999Z"

    /// As its DOM writes it: with an address, a date, and members that are empty.
    private static func entry(
        _ root: String,
        _ members: String,
        etag: String = "",
        expires: String = ""
    ) -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><id>tidings/Registrations/{id}</id><updated>2027-01-01T00:00:00Z</updated><content type=\"application/xml\">"
            + "<\(root) xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\"><ETag>\(etag)</ETag><ExpirationTime>\(expires)</ExpirationTime>"
            + "<RegistrationId>{id}</RegistrationId>\(members)</\(root)></content></entry>"
    }

    private static let platforms: [(type: String, handle: String, template: String)] = [
        ("Gcm", "<GcmRegistrationId>a:1</GcmRegistrationId>", SDKBody.googleTemplate),
        ("FcmV1", "<FcmV1RegistrationId>b:1</FcmV1RegistrationId>", SDKBody.googleV1Template),
        ("Adm", "<AdmRegistrationId>amzn1.x</AdmRegistrationId>", SDKBody.googleTemplate),
        ("Baidu", SDKBody.baiduIDs, SDKBody.flatTemplate),
    ]

    private static let natives: [SDKVector] = platforms.map { row in
        let root = "\(row.type)RegistrationDescription"
        return SDKVector(
            "register \(row.type)",
            "PUT \(id)",
            [:],
            entry(root, "<Tags></Tags>" + row.handle),
            after: .registrationID,
            [.entry(root, row.handle)]
        )
    }

    private static let templates: [SDKVector] = platforms.map { row in
        let root = "\(row.type)TemplateRegistrationDescription"
        let members = "<Tags>a,b</Tags>" + row.handle + SDKBody.template(row.template) + SDKBody.name
        return SDKVector(
            "register \(row.type)Template",
            "PUT \(id)",
            [:],
            entry(root, members),
            after: .registrationID,
            [.entry(root, members)]
        )
    }

    private static let gcm = "GcmRegistrationDescription"
    private static let tagged = "<Tags>a</Tags><GcmRegistrationId>a:1</GcmRegistrationId>"

    private static let registrations: [SDKVector] = [
        .init(
            "create a registration id",
            "POST /tidings/registrationids/?\(version)",
            [:],
            "",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        // What was read is sent back, expiry and all.
        .init(
            "register again",
            "PUT \(id)",
            [:],
            entry(gcm, tagged, etag: "1", expires: never),
            after: .registration,
            [.entry(gcm, etag: 2, tagged)]
        ),
        // It asks for another id, and tries once more.
        .init(
            "register with an id that is none",
            "PUT /tidings/Registrations/not-an-id?\(version)",
            [:],
            entry(gcm, tagged).replacing("{id}", with: "not-an-id"),
            [.status(410)]
        ),
        .init(
            "unregister",
            "DELETE \(id)",
            ["If-Match": "*"],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "unregister what is not there",
            "DELETE \(id)",
            ["If-Match": "*"],
            after: .registrationID,
            [.status(404)]
        ),
    ]

    // MARK: Filters

    private static func filter(_ field: String, _ value: String) -> String {
        "GET /tidings/Registrations/?$filter=\(field)+eq+%27\(value)%27&\(version)"
    }

    private static let filters: [SDKVector] = [
        .init("none", filter("GcmRegistrationId", "a%3A1"), [.feed(gcm, count: 0)]),
        .init(
            "Gcm",
            filter("GcmRegistrationId", "a%3A1"),
            after: .registered(("a:1", .gcm)),
            [.feed(gcm, count: 1)]
        ),
        // It asks for the other one, too, where an app came from the older service.
        .init(
            "Gcm, not the same token of FcmV1",
            filter("GcmRegistrationId", "a%3A1"),
            after: .registered(("a:1", .gcm), ("a:1", .fcmV1)),
            [.feed(gcm, count: 1)]
        ),
        .init(
            "FcmV1",
            filter("FcmV1RegistrationId", "b%3A1"),
            after: .registered(("b:1", .fcmV1)),
            [.feed("FcmV1RegistrationDescription", count: 1)]
        ),
        .init(
            "Adm",
            filter("AdmRegistrationId", "amzn1.x"),
            after: .registered(("amzn1.x", .adm)),
            [.feed("AdmRegistrationDescription", count: 1)]
        ),
        // The two ids in one value.
        .init(
            "Baidu",
            filter("BaiduUserId", "u1-c1"),
            after: .registered(("u1-c1", .baidu), ("u2-c1", .baidu)),
            [.feed("BaiduRegistrationDescription", count: 1)]
        ),
    ]
}

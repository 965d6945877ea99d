import HTTPMessages
import Testing

/// The wire behaviour of iOS's `SBNotificationHub`, as requests of our own (protocol reference, section 11.4).
@Suite("The iOS legacy SDK", .serialized)
struct AppleLegacySDK {
    private static let sdk = SDK(
        style: .apple,
        fields: [
            "Content-Type": "application/xml",
            "User-Agent": "NOTIFICATIONHUBS/2013-04(api-origin=IosSdk; os=iOS; os_version=9.0;)",
        ],
        // Its parser takes text between elements for part of the next value.
        expectations: [.omits("\n"), .omits("> <")]
    )

    @Test("registrations", arguments: vectors)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let version = "api-version=2013-04"
    private static let id = "/tidings/Registrations/{id}?\(version)"
    private static let filter =
        "GET /tidings/Registrations/?$filter=deviceToken+eq+'\(SDKBody.token)'&\(version)"

    private static func entry(_ root: String, _ members: String) -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><content type=\"text/xml\"><\(root) xmlns:i=\"\(SDKBody.instance)\" "
            + "xmlns=\"\(SDKBody.connect)\">\(members)</\(root)></content></entry>"
    }

    private static let apple = "AppleRegistrationDescription"
    private static let native = "<Tags>World,Sports</Tags>" + SDKBody.deviceToken
    private static let template = "AppleTemplateRegistrationDescription"
    private static let start = native + SDKBody.template(SDKBody.appleTemplate) + "<Expiry>0</Expiry>"

    private static let vectors: [SDKVector] = [
        .init("registrations of the token: none", filter, [.feed(apple, count: 0)]),
        .init("registrations of the token", filter, after: .registration, [.feed(apple, count: 1)]),
        .init(
            "create a registration id",
            "POST /tidings/registrationids/?\(version)",
            [:],
            "",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        .init(
            "create, a path that its code has and does not take",
            "POST /tidings/Registrations/?\(version)",
            [:],
            entry(apple, native),
            [.entry(apple, native)]
        ),
        .init(
            "register native",
            "PUT \(id)",
            [:],
            entry(apple, native),
            after: .registrationID,
            [.entry(apple, native)]
        ),
        .init(
            "register native again",
            "PUT \(id)",
            [:],
            entry(apple, native),
            after: .registration,
            [.entry(apple, etag: 2, native)]
        ),
        .init(
            "register without tags",
            "PUT \(id)",
            [:],
            entry(apple, SDKBody.deviceToken),
            after: .registrationID,
            [.entry(apple, SDKBody.deviceToken), .omits("<Tags")]
        ),
        .init(
            "register a template",
            "PUT \(id)",
            [:],
            entry(template, start + SDKBody.name),
            after: .registrationID,
            [.entry(template, start + SDKBody.name + "<ApnsHeaders/>")]
        ),
        .init(
            "register a template with a priority before its name",
            "PUT \(id)",
            [:],
            entry(template, start + "<Priority>10</Priority>" + SDKBody.name),
            after: .registrationID,
            [.entry(template, start + SDKBody.name + "<Priority>10</Priority><ApnsHeaders/>")]
        ),
        // It asks for another id, and tries once more.
        .init(
            "register with an id that is none",
            "PUT /tidings/Registrations/not-an-id?\(version)",
            [:],
            entry(apple, native),
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
}

import HTTPMessages
import TidingsModels
import Testing

/// The wire behaviour of Java's `Notification-Hubs-java-sdk`, as requests of our own (protocol reference, sections 10.4 and 11.3).
@Suite("The Java SDK", .serialized)
struct JavaSDK {
    private static let trace = "7f0c2f5e-55b0-4d0e-8c53-0f4a9e2f7c11"
    static let sdk = SDK(
        style: .java,
        isHTTP2: true,
        fields: [
            "TrackingId": trace, "User-Agent": "NHub/2020-06 (api-origin=JavaSDK;os=Linux;os-version=6.1)",
        ],
        expectations: [
            .field("TrackingId", trace),
            // In HTTP/2 alone no name has a capital letter (RFC 9113 section 8.2.1).
            .init("HTTP/2") { $0.answer.fields.lines.allSatisfy { $0.name == $0.name.lowercased() } },
        ]
    )

    @Test("registrations", arguments: created + registrations + lists)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    // MARK: Registrations

    static let version = "api-version=2020-06"
    private static let path = "/tidings/registrations"
    private static let id = "\(path)/{id}?\(version)"
    private static let atom: HTTPFields = ["Content-Type": "application/atom+xml; charset=UTF-8"]

    private static func entry(_ root: String, _ members: String) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\">"
            + "<\(root) xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\">\(members)</\(root)></content></entry>"
    }

    private static func google(_ prefix: String, _ template: String) -> String {
        "<\(prefix)RegistrationId>x:1</\(prefix)RegistrationId>" + SDKBody.template(template)
    }

    private static let browser =
        "<Endpoint>https://push.example/1</Endpoint><P256DH>BPk</P256DH><Auth>x</Auth>"
    private static let appleTemplate = SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate)

    /// Its parser throws at an element that the type does not have: what is read must not hold one more.
    private static let descriptions: [SDKDescription] = [
        .init("Apple", SDKBody.deviceToken),
        .init("Gcm", "<GcmRegistrationId>g:1</GcmRegistrationId>"),
        .init("FcmV1", "<FcmV1RegistrationId>f:1</FcmV1RegistrationId>"),
        .init("Windows", SDKBody.channelURI),
        .init("Mpns", SDKBody.channelURI),
        .init("Adm", "<AdmRegistrationId>amzn1.x</AdmRegistrationId>"),
        .init("Baidu", SDKBody.baiduIDs),
        .init("Browser", browser),
        .init(
            "AppleTemplate",
            appleTemplate + "<Expiry>$(expiry)</Expiry>",
            read: appleTemplate + "<Expiry>$(expiry)</Expiry><ApnsHeaders/>"
        ),
        .init("GcmTemplate", google("Gcm", SDKBody.googleTemplate)),
        .init("FcmV1Template", google("FcmV1", SDKBody.googleV1Template)),
        .init(
            "WindowsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.toastTemplate) + SDKBody.toastHeader
        ),
        .init(
            "MpnsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.phoneTemplate) + SDKBody.phoneHeaders
        ),
        .init("AdmTemplate", google("Adm", SDKBody.googleTemplate)),
        .init("BaiduTemplate", SDKBody.baiduIDs + SDKBody.template(SDKBody.flatTemplate)),
        .init("BrowserTemplate", browser + SDKBody.template(SDKBody.flatTemplate)),
    ]

    private static let created: [SDKVector] = descriptions.map { description in
        SDKVector(
            "create \(description.type)",
            "POST \(path)?\(version)",
            atom,
            entry(description.root, "<Tags>x, y</Tags>" + description.written),
            [.entry(description.root, "<Tags>x,y</Tags>" + description.read)]
        )
    }

    private static let apple = "AppleRegistrationDescription"
    private static let tagged = "<Tags>c</Tags>" + SDKBody.deviceToken
    private static let change = entry(apple, tagged)

    private static let registrations: [SDKVector] = [
        .init(
            "create a registration id",
            "POST /tidings/registrationids?\(version)",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        .init(
            "create Fcm, which comes back as Gcm",
            "POST \(path)?\(version)",
            atom,
            entry("FcmRegistrationDescription", "<FcmRegistrationId>g:1</FcmRegistrationId>"),
            [.entry("GcmRegistrationDescription", "<GcmRegistrationId>g:1</GcmRegistrationId>")]
        ),
        .init("upsert", "PUT \(id)", atom, change, after: .registrationID, [.entry(apple, tagged)]),
        .init(
            "update",
            "PUT \(id)",
            atom + ["If-Match": "W/\"1\""],
            change,
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update a version that is gone",
            "PUT \(id)",
            atom + ["If-Match": "W/\"7\""],
            change,
            after: .registration,
            [.error(412)]
        ),
        .init(
            "get",
            "GET \(id)",
            after: .registration,
            [.entry(apple, "<Tags>a,b</Tags>" + SDKBody.deviceToken)]
        ),
        .init("get what is not there", "GET \(id)", after: .registrationID, [.error(404)]),
        .init(
            "delete",
            "DELETE \(id)",
            ["If-Match": "*"],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "delete what is not there",
            "DELETE \(id)",
            ["If-Match": "*"],
            after: .registrationID,
            [.status(404)]
        ),
    ]

    private static let fcmV1 = "FcmV1RegistrationDescription"
    private static let firstPage = "GET \(path)?\(version)&$top=2"
    private static let firstTagged = "GET /tidings/tags/a/registrations?\(version)&$top=2"

    private static let firstOfChannel = "GET \(path)?\(version)&$filter=ChannelUri+eq+%27t%3A2%27&$top=1"

    private static let lists: [SDKVector] = [
        .init("list all", "GET \(path)?\(version)", after: .registrations, [.feed(fcmV1, count: 3)]),
        .init(
            "list all, first page",
            firstPage,
            after: .registrations,
            [.feed(fcmV1, count: 2), .has("X-MS-ContinuationToken")]
        ),
        .init(
            "list all, last page",
            "\(firstPage)&ContinuationToken={token}",
            after: .page(firstPage),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
        .init("list by tag", firstTagged, after: .registrations, [.feed(fcmV1, count: 2)]),
        .init(
            "list by tag, last page",
            "\(firstTagged)&ContinuationToken={token}",
            after: .page(firstTagged),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
        .init(
            "list by channel",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27\(SDKBody.token)%27",
            after: .registration,
            [.feed(apple, count: 1)]
        ),
        // The tag is not escaped.
        .init(
            "list by a tag of many signs",
            "GET /tidings/tags/user:77_x-y@orchard.example/registrations?\(version)",
            after: .registered(("t:1", .fcmV1), tags: ["user:77_x-y@orchard.example"]),
            [.feed(fcmV1, count: 1)]
        ),
        .init(
            "list by a channel that is an address",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27https%3A%2F%2Fa.notify.windows.com%2F%3Ftoken%3Dx%27",
            after: .registered((SDKBody.channel, .wns), ("https://a.notify.windows.com/?token=y", .wns)),
            [.feed("WindowsRegistrationDescription", count: 1)]
        ),
        .init(
            "list by channel, first page",
            firstOfChannel,
            after: .registrations,
            [.feed(fcmV1, count: 1), .has("X-MS-ContinuationToken")]
        ),
        .init(
            "list by channel, last page",
            "\(firstOfChannel)&ContinuationToken={token}",
            after: .page(firstOfChannel),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
    ]
}

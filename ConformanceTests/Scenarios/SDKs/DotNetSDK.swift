import HTTPMessages
import TidingsModels
import Testing

/// The wire behaviour of `Microsoft.Azure.NotificationHubs`, as requests of our own (protocol reference, sections 10.4 and 11.2).
@Suite("The .NET SDK", .serialized)
struct DotNetSDK {
    private static let trace = "0b6ab7b1-6f43-4a05-9fd7-3c5f1a7d33f0"
    static let sdk = SDK(
        style: .dotNet,
        fields: [
            "TrackingId": trace,
            "User-Agent": "NHub/2020-06 (api-origin=DotNetSdk;os=Unix;os-version=5.15)",
        ],
        expectations: [.field("TrackingId", trace)]
    )

    @Test("registrations", arguments: created + registrations + lists)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    // MARK: Registrations

    static let version = "api-version=2020-06"
    private static let path = "/tidings/registrations"
    private static let id = "\(path)/{id}?\(version)"
    static let atom: HTTPFields = ["Content-Type": "application/atom+xml;type=entry;charset=utf-8"]

    /// The base type with `i:type`, on one line, the id nil.
    private static func entry(_ root: String, _ members: String, cleared: String = "") -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><content type=\"application/xml\"><RegistrationDescription i:type=\"\(root)\" "
            + "xmlns=\"\(SDKBody.connect)\" xmlns:i=\"\(SDKBody.instance)\">\(cleared)<RegistrationId i:nil=\"true\"/>\(members)"
            + "</RegistrationDescription></content></entry>"
    }

    private static let common = "<Tags>a,b</Tags><PushVariables>{\"k\":\"v\"}</PushVariables>"

    /// Each type that the SDK has, with its members in the order of the data contract.
    private static let descriptions: [SDKDescription] = [
        .init("Apple", SDKBody.deviceToken),
        .init("Gcm", "<GcmRegistrationId>g:1</GcmRegistrationId>"),
        .init("FcmV1", "<FcmV1RegistrationId>f:1</FcmV1RegistrationId>"),
        .init("Windows", SDKBody.channelURI + "<SecondaryTileName>tile</SecondaryTileName>"),
        .init("Mpns", SDKBody.channelURI + "<SecondaryTileName>tile</SecondaryTileName>"),
        .init("Adm", "<AdmRegistrationId>amzn1.x</AdmRegistrationId>"),
        .init("Baidu", SDKBody.baiduIDs),
        .init(
            "AppleTemplate",
            SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate) + "<Expiry>0</Expiry>"
                + SDKBody.name + "<Priority>10</Priority>" + SDKBody.appleHeaders
        ),
        .init("GcmTemplate", google("Gcm", SDKBody.googleTemplate)),
        .init("FcmV1Template", google("FcmV1", SDKBody.googleV1Template)),
        .init(
            "WindowsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.toastTemplate) + SDKBody.toastHeader + SDKBody.name
        ),
        .init(
            "MpnsTemplate",
            SDKBody.channelURI + SDKBody.template(SDKBody.phoneTemplate) + SDKBody.phoneHeaders + SDKBody.name
        ),
        .init("AdmTemplate", google("Adm", SDKBody.googleTemplate)),
        .init(
            "BaiduTemplate",
            SDKBody.baiduIDs + SDKBody.template(SDKBody.flatTemplate) + SDKBody.name
                + "<MessageType>1</MessageType>"
        ),
    ]

    private static func google(_ prefix: String, _ template: String) -> String {
        "<\(prefix)RegistrationId>x:1</\(prefix)RegistrationId>" + SDKBody.template(template) + SDKBody.name
    }

    private static let created: [SDKVector] = descriptions.map { description in
        SDKVector(
            "create \(description.type)",
            "POST \(path)?\(version)",
            atom,
            entry(description.root, common + description.written),
            [.has("Content-Location"), .entry(description.root, common + description.read)]
        )
    }

    private static let apple = "AppleRegistrationDescription"
    private static let tagged = "<Tags>c</Tags>" + SDKBody.deviceToken
    private static let change = entry(apple, tagged)
    private static let nilMembers =
        "<Expiry i:nil=\"true\"/><TemplateName>t</TemplateName><Priority i:nil=\"true\"/><ApnsHeaders/>"

    private static let registrations: [SDKVector] = [
        .init(
            "create a registration id",
            "POST /tidings/registrationids?\(version)",
            [:],
            "",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        .init(
            "create with every member nil that may be",
            "POST \(path)?\(version)",
            atom,
            entry(
                "AppleTemplateRegistrationDescription",
                SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate) + nilMembers,
                cleared: "<ETag i:nil=\"true\"/><ExpirationTime i:nil=\"true\"/>"
            ),
            [
                .entry(
                    "AppleTemplateRegistrationDescription",
                    SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate)
                        + "<Expiry i:nil=\"true\"/><TemplateName>t</TemplateName><ApnsHeaders/>"
                )
            ]
        ),
        .init("create or update", "PUT \(id)", atom, change, after: .registrationID, [.entry(apple, tagged)]),
        .init(
            "create or update what is there",
            "PUT \(id)",
            atom,
            change,
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update the version that was read",
            "PUT \(id)",
            ["If-Match": "\"1\""] + atom,
            change,
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update any version",
            "PUT \(id)",
            ["If-Match": "*"] + atom,
            change,
            after: .registration,
            [.entry(apple, etag: 2, tagged)]
        ),
        .init(
            "update to another type",
            "PUT \(id)",
            ["If-Match": "\"1\""] + atom,
            entry("GcmTemplateRegistrationDescription", google("Gcm", SDKBody.googleTemplate)),
            after: .registration,
            [.entry("GcmTemplateRegistrationDescription", etag: 2, google("Gcm", SDKBody.googleTemplate))]
        ),
        .init(
            "update a version that is gone",
            "PUT \(id)",
            ["If-Match": "\"7\""] + atom,
            change,
            after: .registration,
            [.error(412)]
        ),
        .init(
            "update what is not there",
            "PUT \(id)",
            ["If-Match": "*"] + atom,
            change,
            after: .registrationID,
            [.error(404)]
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
            "delete the version that was read",
            "DELETE \(id)",
            ["If-Match": "\"1\""],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "delete what is not there",
            "DELETE \(id)",
            ["If-Match": "*"],
            after: .registrationID,
            [.error(404)]
        ),
    ]

    private static let fcmV1 = "FcmV1RegistrationDescription"
    private static let firstPage = "GET \(path)?\(version)&$top=2"
    private static let firstTagged = "GET /tidings/tags/a/registrations?\(version)&$top=2"

    private static let firstOfChannel = "GET \(path)?\(version)&$filter=ChannelUri+eq+%27t%3a2%27&$top=1"

    private static let lists: [SDKVector] = [
        .init(
            "list by channel, first page",
            firstOfChannel,
            after: .registrations,
            [.feed(fcmV1, count: 1), .has("X-MS-ContinuationToken")]
        ),
        .init(
            "list by channel, last page",
            "\(firstOfChannel)&continuationtoken={token}",
            after: .page(firstOfChannel),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
        .init(
            "list all",
            "GET \(path)?\(version)&$top=100",
            after: .registrations,
            [.feed(fcmV1, count: 3), .lacks("X-MS-ContinuationToken")]
        ),
        .init("list none", "GET \(path)?\(version)&$top=100", [.feed(fcmV1, count: 0)]),
        .init(
            "list all, first page",
            firstPage,
            after: .registrations,
            [.feed(fcmV1, count: 2), .has("X-MS-ContinuationToken")]
        ),
        // The token goes back as it came, without encoding.
        .init(
            "list all, last page",
            "\(firstPage)&continuationtoken={token}",
            after: .page(firstPage),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
        .init("list by tag", firstTagged, after: .registrations, [.feed(fcmV1, count: 2)]),
        .init(
            "list by tag, last page",
            "\(firstTagged)&continuationtoken={token}",
            after: .page(firstTagged),
            [.feed(fcmV1, count: 1), .lacks("X-MS-ContinuationToken")]
        ),
        .init(
            "list by a user's tag, which goes into the path as it is",
            "GET /tidings/tags/$UserId:{pomona}/registrations?\(version)&$top=100",
            after: .installation,
            [.status(200), .body("<Tags>", "$UserId:{pomona}", "</Tags>")]
        ),
        // One field for every platform.
        .init(
            "list by channel",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27\(SDKBody.token.lowercased())%27&$top=100",
            after: .registration,
            [.feed(apple, count: 1)]
        ),
        .init(
            "list by a channel that is an address",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27https%3a%2f%2fa.notify.windows.com%2f%3ftoken%3dx%27&$top=100",
            after: .registered((SDKBody.channel, .wns), ("https://a.notify.windows.com/?token=y", .wns)),
            [.feed("WindowsRegistrationDescription", count: 1)]
        ),
        .init(
            "list by the two ids of Baidu",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27u1-c1%27&$top=100",
            after: .registered(("u1-c1", .baidu), ("u1-c2", .baidu)),
            [.feed("BaiduRegistrationDescription", count: 1)]
        ),
        .init(
            "list by the channel of another platform",
            "GET \(path)?\(version)&$filter=ChannelUri+eq+%27t%3a1%27&$top=100",
            after: .registrations,
            [.feed(fcmV1, count: 1)]
        ),
    ]
}

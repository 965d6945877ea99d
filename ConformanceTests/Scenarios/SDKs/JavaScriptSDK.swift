import HTTPMessages
import Testing

/// The wire behaviour of `@azure/notification-hubs`, as requests of our own (protocol reference, sections 10.4 and 11.8).
@Suite("The JavaScript SDK", .serialized)
struct JavaScriptSDK {
    static let sdk = SDK(
        style: .javaScript,
        fields: [
            "x-ms-version": "2020-06",
            "x-ms-azsdk-telemetry": "class=NotificationHubsServiceClient;method=x",
            "User-Agent": "azsdk-js-notificationhubs/2.0.0 core-rest-pipeline/1.10.0 Node/v20.0.0",
        ],
        // Every result of the SDK holds both.
        expectations: [.has("TrackingId"), .has("x-ms-correlation-request-id")]
    )

    @Test("registrations", arguments: created + registrations + lists)
    func registration(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    // MARK: Registrations

    static let version = "api-version=2020-06"
    private static let path = "/tidings/registrations"
    private static let id = "\(path)/{id}?\(version)"
    static let xml: HTTPFields = ["Content-Type": "application/xml;type=entry;charset=utf-8"]

    private static func entry(_ root: String, _ members: String) -> String {
        "<entry xmlns=\"\(SDKBody.atom)\"><updated>2027-01-01T00:00:00.000Z</updated><content type=\"application/xml\">"
            + "<\(root) xmlns=\"\(SDKBody.connect)\" xmlns:i=\"\(SDKBody.instance)\">\(members)</\(root)></content></entry>"
    }

    private static let common = "<Tags>a,b</Tags><PushVariables>{\"k\":\"v\"}</PushVariables>"

    private static func google(_ prefix: String, _ template: String) -> String {
        "<\(prefix)RegistrationId>x:1</\(prefix)RegistrationId>" + SDKBody.template(template) + SDKBody.name
    }

    private static let endpoint = "<Endpoint>https://push.example/1</Endpoint>"
    private static let baidu = "<BaiduChannelId>c1</BaiduChannelId><BaiduUserId>u1</BaiduUserId>"
    private static let browser = endpoint + "<Auth>x</Auth><P256DH>BPk</P256DH>"
    private static let browserRead = endpoint + "<P256DH>BPk</P256DH><Auth>x</Auth>"
    private static let apple = SDKBody.deviceToken + SDKBody.template(SDKBody.appleTemplate)
    private static let windows = SDKBody.channelURI + SDKBody.template(SDKBody.toastTemplate)
    private static let phone = SDKBody.channelURI + SDKBody.template(SDKBody.phoneTemplate)
    private static let twoHeaders = SDKBody.headers("Wns", ["X-WNS-Type": "wns/toast", "X-WNS-TTL": "60"])

    /// Some members have an order of its own, and the collections of headers stand last.
    private static let descriptions: [SDKDescription] = [
        .init("Apple", SDKBody.deviceToken),
        .init("Gcm", "<GcmRegistrationId>g:1</GcmRegistrationId>"),
        .init("FcmV1", "<FcmV1RegistrationId>f:1</FcmV1RegistrationId>"),
        .init("Windows", SDKBody.channelURI),
        .init("Mpns", SDKBody.channelURI),
        .init("Adm", "<AdmRegistrationId>amzn1.x</AdmRegistrationId>"),
        .init("Baidu", baidu, read: SDKBody.baiduIDs),
        .init("Browser", browser, read: browserRead),
        .init("Xiaomi", "<XiaomiRegistrationId>m:1</XiaomiRegistrationId>"),
        .init(
            "AppleTemplate",
            apple + SDKBody.name + "<Expiry>0</Expiry>" + SDKBody.appleHeaders,
            read: apple + "<Expiry>0</Expiry>" + SDKBody.name + SDKBody.appleHeaders
        ),
        .init("GcmTemplate", google("Gcm", SDKBody.googleTemplate)),
        .init("FcmV1Template", google("FcmV1", SDKBody.googleV1Template)),
        .init(
            "WindowsTemplate",
            windows + SDKBody.name + twoHeaders,
            read: windows + twoHeaders + SDKBody.name
        ),
        .init(
            "MpnsTemplate",
            phone + SDKBody.name + SDKBody.phoneHeaders,
            read: phone + SDKBody.phoneHeaders + SDKBody.name
        ),
        .init("AdmTemplate", google("Adm", SDKBody.googleTemplate)),
        .init(
            "BaiduTemplate",
            baidu + SDKBody.template(SDKBody.flatTemplate) + SDKBody.name,
            read: SDKBody.baiduIDs + SDKBody.template(SDKBody.flatTemplate) + SDKBody.name
        ),
        .init(
            "BrowserTemplate",
            browser + SDKBody.template(SDKBody.flatTemplate) + SDKBody.name,
            read: browserRead + SDKBody.template(SDKBody.flatTemplate) + SDKBody.name
        ),
        .init("XiaomiTemplate", google("Xiaomi", SDKBody.flatTemplate)),
    ]

    private static let created: [SDKVector] = descriptions.map { description in
        SDKVector(
            "create \(description.type)",
            "POST \(path)?\(version)",
            xml,
            entry(description.root, common + description.written),
            [.has("Content-Location"), .entry(description.root, common + description.read)]
        )
    }

    private static let root = "AppleRegistrationDescription"
    private static let tagged = "<Tags>c</Tags>" + SDKBody.deviceToken
    private static let change = entry(root, "<RegistrationId>{id}</RegistrationId>" + tagged)

    private static let registrations: [SDKVector] = [
        .init(
            "create a registration id",
            "POST /tidings/registrationIDs?\(version)",
            xml,
            "",
            [.status(201), .location("/tidings/registrationids"), .empty]
        ),
        .init(
            "create WindowsTemplate with one header",
            "POST \(path)?\(version)",
            xml,
            entry("WindowsTemplateRegistrationDescription", windows + SDKBody.name + SDKBody.toastHeader),
            [.entry("WindowsTemplateRegistrationDescription", windows + SDKBody.toastHeader + SDKBody.name)]
        ),
        .init("create or update", "PUT \(id)", xml, change, after: .registrationID, [.entry(root, tagged)]),
        .init(
            "create or update what is there",
            "PUT \(id)",
            xml,
            change,
            after: .registration,
            [.entry(root, etag: 2, tagged)]
        ),
        .init(
            "update",
            "PUT \(id)",
            xml + ["If-Match": "\"1\""],
            change,
            after: .registration,
            [.entry(root, etag: 2, tagged)]
        ),
        .init(
            "update any version",
            "PUT \(id)",
            xml + ["If-Match": "*"],
            change,
            after: .registration,
            [.entry(root, etag: 2, tagged)]
        ),
        .init(
            "update a version that is gone",
            "PUT \(id)",
            xml + ["If-Match": "\"7\""],
            change,
            after: .registration,
            [.error(412)]
        ),
        .init(
            "get",
            "GET \(id)",
            xml,
            after: .registration,
            [.entry(root, "<Tags>a,b</Tags>" + SDKBody.deviceToken)]
        ),
        .init("get what is not there", "GET \(id)", xml, after: .registrationID, [.error(404)]),
        // With a content type, though there is no body.
        .init(
            "delete",
            "DELETE \(id)",
            xml + ["If-Match": "*"],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "delete the version that was read",
            "DELETE \(id)",
            xml + ["If-Match": "\"1\""],
            after: .registration,
            [.status(200), .empty, .gone]
        ),
        .init(
            "delete what is not there",
            "DELETE \(id)",
            xml + ["If-Match": "*"],
            after: .registrationID,
            [.error(404)]
        ),
    ]

    private static let fcmV1 = "FcmV1RegistrationDescription"
    private static let firstPage = "GET \(path)?\(version)&$top=2"
    private static let firstTagged = "GET /tidings/tags/a/registrations?\(version)&$top=2"

    private static let firstOfFilter = "GET \(path)?\(version)&$filter=ChannelUri%20eq%20't:2'&$top=1"

    private static let lists: [SDKVector] = [
        .init(
            "list by filter, first page",
            firstOfFilter,
            after: .registrations,
            [.feed(fcmV1, count: 1), .has("x-ms-continuationtoken")]
        ),
        .init(
            "list by filter, last page",
            "\(firstOfFilter)&continuationtoken={token}",
            after: .page(firstOfFilter),
            [.feed(fcmV1, count: 1), .lacks("x-ms-continuationtoken")]
        ),
        .init("list all", "GET \(path)?\(version)", after: .registrations, [.feed(fcmV1, count: 3)]),
        .init(
            "list all, first page",
            firstPage,
            after: .registrations,
            [.feed(fcmV1, count: 2), .has("x-ms-continuationtoken")]
        ),
        .init(
            "list all, last page",
            "\(firstPage)&continuationtoken={token}",
            after: .page(firstPage),
            [.feed(fcmV1, count: 1), .lacks("x-ms-continuationtoken")]
        ),
        .init("list by tag", firstTagged, after: .registrations, [.feed(fcmV1, count: 2)]),
        .init(
            "list by tag, last page",
            "\(firstTagged)&continuationtoken={token}",
            after: .page(firstTagged),
            [.feed(fcmV1, count: 1), .lacks("x-ms-continuationtoken")]
        ),
        .init(
            "list by an installation's tag, percent-encoded",
            "GET /tidings/tags/%24InstallationId%3A%7Bi-1%7D/registrations?\(version)",
            after: .installation,
            [.status(200), .body("<Tags>", "$InstallationId:{i-1}", "</Tags>")]
        ),
        .init(
            "list by filter",
            "GET \(path)?\(version)&$filter=DeviceToken%20eq%20'\(SDKBody.token)'&$top=100",
            after: .registration,
            [.feed(root, count: 1)]
        ),
        .init(
            "list by filter of another platform",
            "GET \(path)?\(version)&%24filter=FcmV1RegistrationId%20eq%20%27t%3A1%27",
            after: .registrations,
            [.feed(fcmV1, count: 1)]
        ),
    ]
}

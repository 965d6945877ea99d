import HTTPMessages
import TidingsModels
import Testing

/// The installations and sends of node's `azure-sb`, and what its older releases do.
extension NodeSDK {
    @Test("installations", arguments: installations)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.last) }

    @Test("sends", arguments: sends)
    func send(_ vector: SDKVector) async throws { try await vector.run(as: Self.last) }

    @Test("older releases", arguments: old)
    func release(_ vector: SDKVector) async throws { try await vector.run(as: Self.older) }

    // MARK: Installations

    private static let installation = "/tidings/installations/i-1?\(version)"

    private static let installations: [SDKVector] = [
        .init(
            "put",
            "PUT \(installation)",
            noType,
            #"{"installationId":"i-1","platform":"apns","pushChannel":"ab12","tags":["a"]}"#,
            [.status(200), .empty, .stored("i-1", .apns, "AB12")]
        ),
        .init(
            "patch",
            "PATCH \(installation)",
            noType,
            #"[{"op":"replace","path":"/pushChannel","value":"cd34"}]"#,
            after: .installation,
            [.status(200), .empty, .stored("i-1", .apns, "CD34")]
        ),
        .init(
            "get",
            "GET \(installation)",
            noType,
            after: .installation,
            [
                .status(200),
                .body(
                    #"{"installationId":"i-1","pushChannel":"\#(SDKBody.token)","#,
                    #""platform":"apns","#,
                    #""tags":["a"]"#
                ),
            ]
        ),
        .init(
            "delete",
            "DELETE \(installation)",
            noType,
            after: .installation,
            [.status(204), .empty, .goneInstallation]
        ),
    ]

    // MARK: Sends

    private static let messages = "POST /tidings/Messages?\(version)"
    private static let sent: [SDKExpectation] = [.status(201), .location("/tidings/messages"), .empty]
    private static let json: HTTPFields = ["Content-Type": "application/json;charset=\"utf-8\""]
    private static let xml: HTTPFields = ["Content-Type": "text/xml"]

    private static func format(_ name: String, _ more: HTTPFields = [:]) -> HTTPFields {
        ["ServiceBusNotification-Format": name] + more
    }

    private static let appleFields =
        format("apple", ["ServiceBusNotification-Apns-Expiry": "2030-01-15T08:00:00.000Z"]) + json

    private static let sends: [SDKVector] = [
        .init("send apple", messages, appleFields, SDKBody.apple, sent + [.target("apple")]),
        .init("send gcm", messages, format("gcm") + json, SDKBody.google, sent + [.target("gcm")]),
        .init(
            "send windows",
            messages,
            format("windows", ["X-WNS-Type": "wns/toast"]) + xml,
            SDKBody.toast,
            sent + [.target("windows")]
        ),
        .init(
            "send windowsphone",
            messages,
            format("windowsphone", ["X-WindowsPhone-Target": "toast", "X-NotificationClass": "2"]) + xml,
            SDKBody.phoneToast,
            sent + [.target("windowsphone")]
        ),
        .init(
            "send a template",
            messages,
            format("template") + json,
            SDKBody.flat,
            sent + [.target("template")]
        ),
        .init(
            "send to tags",
            messages,
            format("apple", ["ServiceBusNotification-Tags": "a || b"]) + json,
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
    ]

    // MARK: Older releases

    private static let older = SDK(style: .node, fields: ["Accept-Charset": "UTF-8"])
    private static let oldVersion = "api-version=2013-07"
    private static let lowerAtom: HTTPFields = [
        "content-type": "application/atom+xml;type=entry;charset=utf-8"
    ]

    private static let old: [SDKVector] = [
        .init(
            "create, by the name of the type",
            "POST /tidings/Registrations?\(oldVersion)",
            lowerAtom,
            "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><entry xmlns=\"\(SDKBody.atom)\"><updated>2027-01-01</updated><content type=\"application/xml\">"
                + "<\(apple) xmlns=\"\(SDKBody.connect)\">\(tagged)</\(apple)></content></entry>",
            [.entry(apple, tagged)]
        ),
        .init(
            "list by tag",
            "GET /tidings/tags/a/Registrations?$top=10&$skip=0&\(oldVersion)",
            after: .registrations,
            [.feed(fcmV1, count: 3)]
        ),
        .init(
            "list with $skip",
            "GET /tidings/Registrations?$top=10&$skip=2&\(oldVersion)",
            after: .registrations,
            [.feed(fcmV1, count: 1)]
        ),
        .init(
            "send with an expiry of its own spelling",
            "POST /tidings/Messages?\(oldVersion)",
            [
                "Content-Type": "application/json;charset=utf-8", "ServiceBusNotification-Format": "apple",
                "ServiceBusNotification-Tags": "a || b",
                "ServiceBusNotification-ApnsExpiry": "2030-07-16T19:20+01:00",
            ],
            SDKBody.apple,
            after: .registration,
            sent + [.target("apple")]
        ),
        .init(
            "put an installation, without a version",
            "PUT /tidings/Installations/i-1",
            ["content-type": "application/json"],
            #"{"platform":"apns","pushChannel":"ab12"}"#,
            [.status(200), .empty, .stored("i-1", .apns, "AB12")]
        ),
        .init(
            "get an installation",
            "GET /tidings/Installations/i-1?\(oldVersion)",
            after: .installation,
            [.status(200), .body(#"{"installationId":"i-1","#)]
        ),
    ]
}

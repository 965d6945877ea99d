import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// The wire behaviour of iOS's `MSNotificationHub`, version 3, as requests of our own (protocol reference, section 11.5).
@Suite("The iOS SDK, version 3", .serialized)
struct AppleSDK {
    private static let sdk = SDK(
        style: .apple,
        fields: [
            "Content-Type": "application/json", "x-ms-version": "2020-06",
            "User-Agent": "NOTIFICATIONHUBS/2020-06(api-origin=IosSdkV3.1.5; os=iOS; os_version=15.0;)",
        ]
    )

    @Test("installations", arguments: vectors)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let put = "PUT /tidings/installations/i-1?api-version=2020-06"
    private static let stored: [SDKExpectation] = [.status(200), .stored("i-1", .apns, SDKBody.token)]

    /// Pretty-printed, with a date of its own form.
    private static func body(_ more: String) -> String {
        """
        {
          "installationId" : "i-1",
          "platform" : "apns",
          "pushChannel" : "\(SDKBody.token.lowercased())",
          "expirationTime" : "2031-06-12T08:05+0200"\(more)
        }
        """
    }

    private static let tags = """
        ,
          "tags" : [
            "country:SE"
          ],
          "userId" : "pomona"
        """
    private static let templates = """
        ,
          "templates" : {
            "headline" : {
              "body" : "{\\"aps\\":{\\"alert\\":\\"$(m)\\"}}",
              "tags" : [ ],
              "headers" : { }
            }
          }
        """

    private static let vectors: [SDKVector] = [
        .init(
            "put a device",
            put,
            [:],
            body(""),
            stored + [
                .init("the date of expiry") {
                    try await $0.world.hub().installation("i-1")?.expires
                        == Timestamp(parsing: "2031-06-12T06:05:00Z")
                }
            ]
        ),
        .init(
            "put a device with tags and user",
            put,
            [:],
            body(tags),
            stored + [
                .init("tags and user") {
                    let found = try await $0.world.hub().installation("i-1")
                    return found?.userID == "pomona" && found?.tags.map(\.text) == ["country:SE"]
                }
            ]
        ),
        .init(
            "put a device with a template",
            put,
            [:],
            body(tags + templates),
            stored + [
                .init("the template") {
                    let found = try await $0.world.hub().installation("i-1")
                    return found?.templates.map(\.name) == ["headline"] && found?.userID == "pomona"
                        && found?.expires == Timestamp(parsing: "2031-06-12T06:05:00Z")
                }
            ]
        ),
        .init("put a device again", put, [:], body(tags), after: .installation, stored),
    ]
}

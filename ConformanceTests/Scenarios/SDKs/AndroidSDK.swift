import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// The wire behaviour of Android's `messaging.notificationhubs`, version 1, as requests of our own (protocol reference, section 11.7).
@Suite("The Android SDK, version 1", .serialized)
struct AndroidSDK {
    private static let sdk = SDK(
        style: .android,
        fields: [
            "Content-Type": "application/json", "x-ms-version": "2020-06",
            "User-Agent":
                "NOTIFICATIONHUBS/2020-06 (api-origin=AndroidSdkV1FcmV1.1.4; os=Android; os_version=13;)",
        ]
    )

    @Test("installations", arguments: vectors)
    func installation(_ vector: SDKVector) async throws { try await vector.run(as: Self.sdk) }

    private static let put = "PUT /tidings/installations/i-1?api-version=2020-06"
    private static let bodies = [
        "gcm": SDKBody.googleTemplate, "fcmv1": SDKBody.googleV1Template,
    ].mapValues { $0.replacing("\"", with: "\\\"") }

    private static func body(_ platform: String, _ more: String) -> String {
        "{\"installationId\":\"i-1\",\"platform\":\"\(platform)\",\"pushChannel\":\"c7:x\",\"tags\":[\"a\"],\(more)\"expirationTime\":\"2031-06-12T08:05+0000\"}"
    }

    /// A template repeats its name.
    private static func templates(_ platform: String) -> String {
        "\"templates\":{\"t\":{\"name\":\"t\",\"body\":\"\(bodies[platform] ?? "")\",\"headers\":{},\"tags\":[]}},"
    }

    private static func installation(
        _ platform: Platform,
        user: String? = nil,
        templates: [String] = []
    ) -> [SDKExpectation] {
        [
            // Exactly 200: with another status of success it parses the body.
            .status(200), .empty, .stored("i-1", platform, "c7:x"),
            .init("date, user \(user ?? "none") and templates \(templates)") { outcome in
                let found = try await outcome.world.hub().installation("i-1")
                return found?.userID == user && found?.templates.map(\.name) == templates
                    && found?.expires == Timestamp(parsing: "2031-06-12T08:05:00Z")
            },
            .init("a registration each") {
                try await $0.world.hub().registrations(handle: "c7:x").count == 1 + templates.count
            },
        ]
    }

    private static let vectors: [SDKVector] = [
        .init("put gcm", put, [:], body("gcm", "\"templates\":{},"), installation(.gcm)),
        .init("put fcmv1", put, [:], body("fcmv1", "\"templates\":{},"), installation(.fcmV1)),
        .init(
            "put gcm with a user",
            put,
            [:],
            body("gcm", "\"templates\":{},\"userId\":\"pomona\","),
            installation(.gcm, user: "pomona")
        ),
        .init(
            "put gcm with a template",
            put,
            [:],
            body("gcm", templates("gcm")),
            installation(.gcm, templates: ["t"])
        ),
        .init(
            "put fcmv1 with a template and a user",
            put,
            [:],
            body("fcmv1", templates("fcmv1") + "\"userId\":\"pomona\","),
            installation(.fcmV1, user: "pomona", templates: ["t"])
        ),
        .init(
            "put in place of what is there",
            put,
            [:],
            body("fcmv1", "\"templates\":{},"),
            after: .installation,
            installation(.fcmV1)
        ),
    ]
}

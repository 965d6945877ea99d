package import TidingsModels

/// A payload as one platform's sender takes it: equal for every target of a render unit.
package struct PlatformPayload: Sendable, Equatable {
    /// The sender. A legacy Google payload that was translated names ``Platform/fcmV1``.
    package var platform: Platform
    /// In the platform's own spelling.
    package var headers: [RegistrationTemplate.Header]
    package var body: [UInt8]
    /// FCM v1: where the target's token goes in, as a JSON string.
    package var tokenOffset: Int?

    package init(
        platform: Platform,
        headers: [RegistrationTemplate.Header],
        body: [UInt8],
        tokenOffset: Int? = nil
    ) {
        self.platform = platform
        self.headers = headers
        self.body = body
        self.tokenOffset = tokenOffset
    }

    package func header(_ name: String) -> String? {
        headers.first { $0.name.lowercased() == name.lowercased() }?.value
    }
}

/// Why a payload goes to nobody: the outcome of every target, and the reason for people.
package struct PayloadRefusal: Error, Equatable, Sendable {
    package let outcome: Outcome
    package let reason: String
}

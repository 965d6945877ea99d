import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import TidingsModels

/// `/3/device/{token}`: Apple's provider API (push services reference, sections 1.2 to 1.10).
final class APNsDoor: Sendable {
    private let credentials: GatewayCredentials.APNs
    private let time: any TimeSource
    /// Until their hour is over.
    private let verified = VerifiedTokens<Void>()
    private static let tokenLife = Duration.seconds(3600)
    private static let clockSkew = Duration.seconds(300)
    /// Apple's longest storage.
    private static let storageMax = Duration.seconds(30 * 86400)
    private static let pushTypes: Set<String> = [
        "alert", "background", "controls", "location", "voip", "complication", "fileprovider", "mdm",
        "liveactivity", "pushtotalk",
        "widgets",
    ]

    init(credentials: GatewayCredentials.APNs, time: any TimeSource) {
        self.credentials = credentials
        self.time = time
    }

    /// A refusal in Apple's words; no other reason may be invented, since libraries look them up.
    private struct Refusal: Error {
        let status: HTTPStatus
        let reason: String
        var timestamp: Timestamp?
        var retryAfter: Int?

        /// The usual reason for a status, where no other is asked for.
        init(_ fault: FaultAnswer, now: Timestamp) {
            let reasons = [
                400: "BadDeviceToken", 403: "ExpiredProviderToken", 404: "BadPath", 405: "MethodNotAllowed",
                410: "Unregistered", 413: "PayloadTooLarge", 429: "TooManyRequests",
                503: "ServiceUnavailable",
            ]
            status = fault.status
            reason = fault.reason ?? reasons[fault.status.code] ?? "InternalServerError"
            timestamp = fault.status.code == 410 ? now : nil
            retryAfter = fault.retryAfter
        }

        init(_ status: HTTPStatus, _ reason: String, timestamp: Timestamp? = nil) {
            self.status = status
            self.reason = reason
            self.timestamp = timestamp
        }
    }

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        let id = request.fields["apns-id"] ?? UUIDText.random()
        do throws(Refusal) {
            try await handle(request, id: id, post: post)
            var response = HTTPResponse(200, ["apns-id": id])
            if request.connection != nil, Self.isSandbox(request.head.authority) {
                response.fields["apns-unique-id"] = UUIDText.random()
            }
            return response
        } catch {
            var body: JSONValue = .object(["reason": .string(error.reason)])
            if let timestamp = error.timestamp {
                body = .object([
                    "reason": .string(error.reason), "timestamp": .number(timestamp.milliseconds),
                ])
            }
            var fields: HTTPFields = ["apns-id": id, "content-type": "application/json"]
            if error.status.code == 405 { fields["allow"] = "POST" }
            fields["retry-after"] = error.retryAfter.map { String($0) }
            return HTTPResponse(error.status, fields, body: body.serialized())
        }
    }

    /// Apple's development environment names each push for its delivery log.
    private static func isSandbox(_ authority: String) -> Bool {
        let host = authority.lowercased()
        return host.hasPrefix("api.sandbox.") || host.hasPrefix("api.development.")
    }

    private func handle(_ request: HTTPRequest, id: String, post: PostMessage) async throws(Refusal) {
        guard request.method == "POST" else { throw Refusal(405, "MethodNotAllowed") }
        let segments = request.target.segments
        guard segments.count >= 2, segments[1] == "device" else { throw Refusal(404, "BadPath") }
        guard segments.count >= 3 else { throw Refusal(400, "MissingDeviceToken") }
        guard segments.count == 3 else { throw Refusal(404, "BadPath") }
        guard segments[2].utf8.count <= 512, let handle = try? PlatformHandle(segments[2], platform: .apns)
        else {
            throw Refusal(400, "BadDeviceToken")
        }
        for name in Set(request.fields.lines.map { $0.name.lowercased() }) where name.hasPrefix("apns-") {
            guard request.fields.all(name).count == 1 else { throw Refusal(400, "DuplicateHeaders") }
        }
        let provider = try authenticate(request)
        let message = try await message(request, handle, provider)
        let result: PostResult
        do { result = try await post(message) } catch { throw Refusal(500, "InternalServerError") }
        switch result {
        case .accepted, .repeated, .dropped: break
        case .unknownHandle: throw Refusal(400, "BadDeviceToken")
        case .expiredHandle(let since): throw Refusal(410, "Unregistered", timestamp: since)
        case .full: throw Refusal(429, "TooManyRequests")
        case .faulted(let answer): throw Refusal(answer, now: time.now)
        }
    }

    /// How a provider proved who it is.
    private enum Provider {
        case token
        /// With the app that it is for.
        case certificate(topic: String?)
    }

    private func authenticate(_ request: HTTPRequest) throws(Refusal) -> Provider {
        if let text = AccessTokens.bearer(request.fields) {
            try check(text, request.connection)
            return .token
        }
        guard let shown = request.clientCertificateHash else { throw Refusal(403, "MissingProviderToken") }
        // Whose certificate it is was proved in the handshake, by its key. Every other than the issued one is a stranger's.
        guard shown == credentials.certificate.fingerprint, time.now < credentials.certificate.expires else {
            throw Refusal(403, "BadCertificate")
        }
        return .certificate(topic: credentials.certificate.userID)
    }

    /// - Parameter connection: In strict mode, what the provider showed on it before.
    private func check(_ text: String, _ connection: ConnectionMemory?) throws(Refusal) {
        let now = time.now
        guard let connection else { return try check(text, now) }
        let token = WebToken(text)
        let keyID = token?.header["kid"]?.stringValue ?? ""
        let isOwnTeam = token?.claims["iss"]?.stringValue == credentials.teamID
        let refusal = connection.update(APNsConnectionRules()) {
            $0.refusal(text, keyID: keyID, isOwnTeam: isOwnTeam, now: now)
        }
        if let refusal { throw Refusal(HTTPStatus(refusal.status), refusal.reason) }
        try check(text, now)
        connection.update(APNsConnectionRules()) { $0.accept(text, keyID: keyID, now: now) }
    }

    private func check(_ text: String, _ now: Timestamp) throws(Refusal) {
        if let known = verified[text] {
            guard now <= known.until else { throw Refusal(403, "ExpiredProviderToken") }
            return
        }
        guard let token = WebToken(text), token.header["kid"]?.stringValue == credentials.keyID,
            token.claims["iss"]?.stringValue == credentials.teamID, token.isSigned(by: credentials.key),
            let issued = token.seconds("iat").map(Timestamp.init(seconds:))
        else { throw Refusal(403, "InvalidProviderToken") }
        guard issued + Self.tokenLife >= now, issued <= now + Self.clockSkew else {
            throw Refusal(403, "ExpiredProviderToken")
        }
        verified.insert(text, (), until: issued + Self.tokenLife)
    }

    /// Wakes the app and shows nothing: Apple sends such at priority 5 alone ("Pushing background updates to your App").
    private static func isSilent(_ body: [UInt8]) -> Bool {
        guard body.holds("\"content-available\""),
            let aps = (try? JSONValue(parsing: body))?["aps"]?.objectValue
        else { return false }
        return aps["content-available"] == 1 && ["alert", "sound", "badge"].allSatisfy { aps[$0] == nil }
    }

    private func message(
        _ request: HTTPRequest,
        _ handle: PlatformHandle,
        _ provider: Provider
    ) async throws(Refusal) -> GatewayMessage {
        let fields = request.fields
        var topic = fields["apns-topic"]
        if topic == nil, case .certificate(let own) = provider { topic = own }
        guard let topic else { throw Refusal(400, "MissingTopic") }
        guard !topic.isEmpty, topic.utf8.allSatisfy({ HubTag.isLegal($0) }) else {
            throw Refusal(400, "BadTopic")
        }
        let pushType = fields["apns-push-type"]
        if let pushType, !Self.pushTypes.contains(pushType) { throw Refusal(400, "InvalidPushType") }
        let priority = fields["apns-priority"]
        if let priority, !["1", "5", "10"].contains(priority) { throw Refusal(400, "BadPriority") }
        if pushType == "background", priority == "10" { throw Refusal(400, "BadPriority") }
        var expires: Timestamp? = time.now + Self.storageMax
        if let text = fields["apns-expiration"] {
            guard let seconds = Int64(text), seconds >= 0 else { throw Refusal(400, "BadExpirationDate") }
            expires =
                seconds == 0
                ? nil : min(Timestamp(seconds: min(seconds, 253_402_300_799)), time.now + Self.storageMax)
        }
        let collapseID = fields["apns-collapse-id"]
        if let collapseID, collapseID.utf8.count > 64 { throw Refusal(400, "BadCollapseId") }
        if let id = fields["apns-id"], !UUIDText.isUUID(id) { throw Refusal(400, "BadMessageId") }
        let countMax = pushType == "voip" ? 5120 : 4096
        let body: [UInt8]
        do { body = try await request.body.collect(upTo: countMax) } catch {
            throw Refusal(413, "PayloadTooLarge")
        }
        guard !body.isEmpty else { throw Refusal(400, "PayloadEmpty") }
        if priority == "10", Self.isSilent(body) { throw Refusal(400, "BadPriority") }
        var headers: [String: String] = [:]
        for name in ["apns-push-type", "apns-priority", "apns-collapse-id", "apns-id"] {
            if let value = fields[name] { headers[name] = value }
        }
        headers["apns-topic"] = topic
        return GatewayMessage(
            handle: handle,
            data: body,
            headers: headers,
            expires: expires,
            collapseKey: collapseID,
            deliveryID: fields["apns-id"]?.lowercased()
        )
    }
}

/// UUIDs as text.
enum UUIDText {
    static func isUUID(_ text: String) -> Bool {
        text.utf8.count == 36
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hex.digit(byte) != nil
            }
    }

    /// Version 4 (RFC 9562 section 5.4).
    static func random() -> String {
        var bytes = Digests.random(16)
        bytes[6] = bytes[6] & 0x0F | 0x40
        bytes[8] = bytes[8] & 0x3F | 0x80
        let text = Array(Hex.encode(bytes).utf8)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: text[$0], as: UTF8.self) }
            .joined(separator: "-")
    }
}

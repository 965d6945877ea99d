import HTTPMessages
import HTTPServing
import HubAPI
import JSONBytes
import PushCredentials
import TidingsModels

/// `/wpush/…` and `/m/{id}`: a Web Push service (RFC 8030, RFC 8292) with Mozilla's answers (push services reference, sections 5 and 6.9).
struct WebPushDoor: Sendable {
    let time: any TimeSource
    let origin: @Sendable () -> String
    /// Takes a message back; false when there is none.
    let cancel: @Sendable (String) async throws -> Bool
    /// The hash of the key that signed.
    private let verified = VerifiedTokens<[UInt8]>()

    private static let ttlMax: Int64 = 30 * 86400
    private static let topicByteCountMax = 32
    private static let urgencies: Set = ["very-low", "low", "normal", "high"]
    /// What a distributor asks for before it trusts an endpoint (UnifiedPush, server discovery).
    private static let discovery = #"{"unifiedpush":{"version":1}}"#

    /// Mozilla's error body.
    private struct Refusal: Error {
        let status: HTTPStatus
        let number: Int
        let message: String
        var fields: HTTPFields = [:]

        init(_ status: HTTPStatus, _ number: Int, _ message: String) {
            self.status = status
            self.number = number
            self.message = message
        }

        var response: HTTPResponse {
            var fields = fields
            fields["Content-Type"] = "application/json"
            if status.code == 410 { fields["Cache-Control"] = "max-age=86400" }
            let body = JSONValue.object([
                "code": .number(status.code), "errno": .number(number), "error": .string(status.reasonPhrase),
                "message": .string(message),
                "more_info": "https://mozilla-services.github.io/autopush-rs/errors.html",
            ])
            return HTTPResponse(status, fields, body: body.serialized())
        }
    }

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        do throws(Refusal) {
            if request.target.segments[0] == "m" { return try await take(request) }
            // Says nothing about the token.
            if request.method == "GET" {
                return HTTPResponse(200, ["Content-Type": "application/json"], text: Self.discovery)
            }
            guard request.method == "POST" else {
                var refusal = Refusal(405, 0, "A subscription takes POST.")
                refusal.fields["Allow"] = "GET, POST"
                throw refusal
            }
            return try await send(request, post)
        } catch { return error.response }
    }

    /// RFC 8030 section 5.4 allows `DELETE` on the message resource that an answer's `Location` named.
    private func take(_ request: HTTPRequest) async throws(Refusal) -> HTTPResponse {
        guard request.method == "DELETE" else {
            var refusal = Refusal(405, 0, "A message takes DELETE.")
            refusal.fields["Allow"] = "DELETE"
            throw refusal
        }
        let segments = request.target.segments
        do {
            if segments.count == 2, try await cancel(segments[1]) { return HTTPResponse(204) }
        } catch { throw Refusal(500, 999, "Internal error.") }
        throw Refusal(404, 102, "There is no such message, or it was delivered.")
    }

    private func send(_ request: HTTPRequest, _ post: PostMessage) async throws(Refusal) -> HTTPResponse {
        guard let endpoint = WebPushEndpoint(segments: request.target.segments) else {
            throw Refusal(404, 102, "This is not the address of a subscription.")
        }
        try authorize(request, endpoint)
        let ttl = try timeToLive(request.fields)
        let topic = try topic(request.fields)
        if let urgency = request.fields["Urgency"], !Self.urgencies.contains(urgency.lowercased()) {
            throw Refusal(400, 114, "Urgency must be very-low, low, normal or high.")
        }
        guard let body = try? await request.body.collect(upTo: WebPushMessage.bodyByteCountMax) else {
            throw Refusal(413, 104, "The body is longer than \(WebPushMessage.bodyByteCountMax) bytes.")
        }
        let message = GatewayMessage(
            handle: endpoint.handle,
            data: body,
            headers: try encoding(request.fields, isEmpty: body.isEmpty),
            expires: ttl == 0 ? nil : time.now + .seconds(ttl),
            collapseKey: topic,
            deliveryID: request.fields[HubHeader.deliveryID]
        )
        let result: PostResult
        do { result = try await post(message) } catch { throw Refusal(500, 999, "Internal error.") }
        switch result {
        case .accepted(let id): return created(id, ttl)
        // The same answer whether a device is there or not, since presence is its own affair.
        case .dropped: return created(Hex.encode(Digests.random(16)), ttl)
        // Its own resource was named when it came first.
        case .repeated: return created(message.deliveryID ?? "", ttl)
        case .unknownHandle: throw Refusal(404, 102, "There is no such subscription.")
        case .expiredHandle: throw Refusal(410, 106, "The subscription has ended.")
        case .faulted(let answer):
            let numbers = [400: 110, 401: 109, 403: 109, 404: 102, 410: 106, 413: 104, 503: 201]
            var refusal = Refusal(
                answer.status,
                numbers[answer.status.code] ?? 999,
                answer.reason ?? "This answer was asked for."
            )
            refusal.fields["Retry-After"] = answer.retryAfter.map { String($0) }
            throw refusal
        case .full:
            var refusal = Refusal(503, 202, "The device has too many messages waiting.")
            refusal.fields["Retry-After"] = "120"
            throw refusal
        }
    }

    private func created(_ id: String, _ ttl: Int64) -> HTTPResponse {
        HTTPResponse(201, ["Location": "\(origin())/m/\(id)", "TTL": String(ttl)])
    }

    /// A restricted subscription needs its key; whoever claims a key must hold it.
    private func authorize(_ request: HTTPRequest, _ endpoint: WebPushEndpoint) throws(Refusal) {
        guard let keyHash = try keyHash(request.fields) else {
            guard endpoint.keyHash == nil else {
                throw unauthorized("it is missing, and this subscription is restricted to a key")
            }
            return
        }
        guard endpoint.keyHash.map({ Digests.equal($0, keyHash) }) ?? true else {
            throw Refusal(403, 109, "VAPID: this subscription is restricted to another key.")
        }
    }

    private func unauthorized(_ reason: String) -> Refusal {
        var refusal = Refusal(401, 109, "VAPID: \(reason).")
        refusal.fields["WWW-Authenticate"] = "vapid"
        return refusal
    }

    /// The hash of the key that signed; nil without a claim.
    private func keyHash(_ fields: HTTPFields) throws(Refusal) -> [UInt8]? {
        guard let authorization = fields["Authorization"] else { return nil }
        let now = time.now
        // The drafts have their key in another field, which is another for each message.
        let isWhole = authorization.lowercased().hasPrefix("vapid ")
        if isWhole, let known = verified[authorization], now < known.until { return known.value }
        do throws(CredentialError) {
            guard let claim = try VAPID.read(fields) else { return nil }
            try VAPID.check(claim, audiences: [origin()], now: now)
            let hash = Digests.sha256(claim.point)
            if isWhole, let end = claim.token.seconds("exp") {
                verified.insert(authorization, hash, until: Timestamp(seconds: end))
            }
            return hash
        } catch { throw unauthorized(error.description) }
    }

    private func timeToLive(_ fields: HTTPFields) throws(Refusal) -> Int64 {
        guard let text = fields["TTL"], let seconds = Int64(text), text.utf8.first != UInt8(ascii: "+") else {
            throw Refusal(400, 111, "TTL is missing, or not a number of seconds.")
        }
        guard seconds >= 0 else { throw Refusal(400, 112, "TTL must not be negative.") }
        return min(seconds, Self.ttlMax)
    }

    private func topic(_ fields: HTTPFields) throws(Refusal) -> String? {
        guard let topic = fields["Topic"] else { return nil }
        let isLegal = topic.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                || $0 == 0x2D || $0 == 0x5F
        }
        guard isLegal, !topic.isEmpty, topic.utf8.count <= Self.topicByteCountMax else {
            throw Refusal(400, 113, "Topic must be 1 to \(Self.topicByteCountMax) characters of base64url.")
        }
        return topic
    }

    /// What the device needs to decrypt; nothing for a message without a body.
    private func encoding(_ fields: HTTPFields, isEmpty: Bool) throws(Refusal) -> [String: String] {
        if isEmpty { return [:] }
        let keys = fields["Crypto-Key"]
        let salt = fields["Encryption"].flatMap { VAPID.Parameters($0)["salt"] }
        switch fields["Content-Encoding"]?.lowercased() {
        case "aes128gcm":
            guard salt == nil, keys.flatMap({ VAPID.Parameters($0)["dh"] }) == nil else {
                throw Refusal(
                    400,
                    110,
                    "aes128gcm has salt and key in its body, not in Encryption and Crypto-Key."
                )
            }
            return ["encoding": "aes128gcm"]
        case "aesgcm":
            guard let encryption = fields["Encryption"], salt?.isEmpty == false, let keys,
                VAPID.Parameters(keys)["dh"]?.isEmpty == false
            else { throw Refusal(400, 110, "aesgcm needs salt in Encryption and dh in Crypto-Key.") }
            return ["encoding": "aesgcm", "encryption": encryption, "crypto_key": keys]
        case nil: throw Refusal(400, 110, "A message with a body needs Content-Encoding aes128gcm or aesgcm.")
        case let other?:
            throw Refusal(400, 110, "Content-Encoding '\(other)' is neither aes128gcm nor aesgcm.")
        }
    }
}

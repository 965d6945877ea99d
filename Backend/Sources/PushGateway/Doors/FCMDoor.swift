import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import TidingsModels

/// `/token` and `/v1/projects/{project}/messages:send`: Google's service (push services reference, sections 2.1 to 2.3).
struct FCMDoor: Sendable {
    let credentials: GatewayCredentials.FCM
    let tokens: AccessTokens
    let time: any TimeSource
    let origin: @Sendable () -> String

    private static let tokenLife = 3599
    private static let bodyByteCountMax = 64 << 10
    private static let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    /// A refusal in Google's form.
    private struct Refusal: Error {
        let code: Int
        let status: String
        let message: String
        var errorCode: String?
        var field: String?
        var retryAfter: Int?

        static func argument(_ field: String, _ message: String) -> Refusal {
            Refusal(
                code: 400,
                status: "INVALID_ARGUMENT",
                message: message,
                errorCode: "INVALID_ARGUMENT",
                field: field
            )
        }

        /// Google's words for a status, where no other error code is asked for.
        init(_ fault: FaultAnswer) {
            let words: (status: String, errorCode: String?) =
                switch fault.status.code {
                case 400, 413: ("INVALID_ARGUMENT", "INVALID_ARGUMENT")
                case 401: ("UNAUTHENTICATED", nil)
                case 403: ("PERMISSION_DENIED", "SENDER_ID_MISMATCH")
                case 404, 410: ("NOT_FOUND", "UNREGISTERED")
                case 429: ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
                case 503: ("UNAVAILABLE", "UNAVAILABLE")
                default: ("INTERNAL", "INTERNAL")
                }
            // Google answers with neither.
            code = [410: 404, 413: 400][fault.status.code] ?? fault.status.code
            status = words.status
            message = "This answer was asked for."
            errorCode = fault.reason ?? words.errorCode
            retryAfter = fault.retryAfter
        }

        init(code: Int, status: String, message: String, errorCode: String? = nil, field: String? = nil) {
            self.code = code
            self.status = status
            self.message = message
            self.errorCode = errorCode
            self.field = field
        }

        var response: HTTPResponse {
            var details: [JSONValue] = []
            if let errorCode {
                details.append(
                    .object([
                        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                        "errorCode": .string(errorCode),
                    ])
                )
            }
            if code == 401 {
                details.append(
                    .object([
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_EXPIRED",
                        "domain": "googleapis.com",
                    ])
                )
            }
            if let field {
                details.append(
                    .object([
                        "@type": "type.googleapis.com/google.rpc.BadRequest",
                        "fieldViolations": .array([
                            .object(["field": .string(field), "description": .string(message)])
                        ]),
                    ])
                )
            }
            var error = JSONObject([
                "code": .number(code), "message": .string(message), "status": .string(status),
            ])
            if !details.isEmpty { error["details"] = .array(details) }
            var fields: HTTPFields = ["Content-Type": "application/json; charset=UTF-8"]
            if code == 405 { fields["Allow"] = "POST" }
            fields["Retry-After"] = retryAfter.map { String($0) }
            return HTTPResponse(
                HTTPStatus(code),
                fields,
                body: JSONValue.object(["error": .object(error)]).serialized()
            )
        }
    }

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        let segments = request.target.segments
        if segments == ["token"] { return await token(request) }
        do throws(Refusal) { return try await send(request, segments, post) } catch { return error.response }
    }

    // MARK: Access tokens

    private func oauthError(_ status: HTTPStatus, _ error: String, _ description: String) -> HTTPResponse {
        HTTPResponse(
            status,
            status.code == 405
                ? ["Content-Type": "application/json; charset=UTF-8", "Allow": "POST"]
                : ["Content-Type": "application/json; charset=UTF-8"],
            body: JSONValue.object(["error": .string(error), "error_description": .string(description)])
                .serialized()
        )
    }

    private func token(_ request: HTTPRequest) async -> HTTPResponse {
        guard request.method == "POST" else {
            return oauthError(405, "invalid_request", "Only POST is allowed.")
        }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax),
            let form = FormBody(body)
        else {
            return oauthError(400, "invalid_request", "The body is not a form.")
        }
        guard form["grant_type"] == Self.grant else {
            return oauthError(400, "unsupported_grant_type", "grant_type must be \(Self.grant).")
        }
        guard let text = form["assertion"], let assertion = WebToken(text) else {
            return oauthError(400, "invalid_grant", "The assertion is not a JWT.")
        }
        guard assertion.claims["iss"]?.stringValue == credentials.clientEmail else {
            return oauthError(400, "invalid_grant", "The issuer is not a known service account.")
        }
        guard assertion.isSigned(by: credentials.key) else {
            return oauthError(400, "invalid_grant", "Invalid JWT Signature.")
        }
        // google-auth names Google's own token service whatever token_uri says.
        let audiences = ["https://oauth2.googleapis.com/token", origin() + "/token"]
        guard let audience = assertion.claims["aud"]?.stringValue,
            audiences.contains(audience) || audience.hasSuffix("/token")
        else {
            return oauthError(400, "invalid_grant", "The audience is not this token service.")
        }
        let now = time.now.seconds
        guard let issued = assertion.seconds("iat"), let expires = assertion.seconds("exp"), expires > now,
            issued <= now + 300,
            expires - issued <= 3600
        else {
            return oauthError(
                400,
                "invalid_grant",
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
            )
        }
        let token = tokens.issue("fcm:" + credentials.projectID, expires: time.now + .seconds(Self.tokenLife))
        return HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=UTF-8"],
            body: JSONValue.object([
                "access_token": .string(token), "expires_in": .number(Self.tokenLife), "token_type": "Bearer",
            ]).serialized()
        )
    }

    // MARK: messages:send

    private func send(
        _ request: HTTPRequest,
        _ segments: [String],
        _ post: PostMessage
    ) async throws(Refusal) -> HTTPResponse {
        guard segments.count == 4, segments[1] == "projects", segments[3] == "messages:send" else {
            throw Refusal(code: 404, status: "NOT_FOUND", message: "Requested entity was not found.")
        }
        guard request.method == "POST" else {
            throw Refusal(code: 405, status: "INVALID_ARGUMENT", message: "Only POST is allowed.")
        }
        guard let token = AccessTokens.bearer(request.fields),
            tokens.isValid(token, for: "fcm:" + credentials.projectID, now: time.now)
        else {
            throw Refusal(
                code: 401,
                status: "UNAUTHENTICATED",
                message: "Request had invalid authentication credentials. Expected OAuth 2 access token."
            )
        }
        guard segments[2] == credentials.projectID else {
            throw Refusal(
                code: 403,
                status: "PERMISSION_DENIED",
                message: "The project '\(segments[2])' is not this account's."
            )
        }
        let body: [UInt8]
        do { body = try await request.body.collect(upTo: Self.bodyByteCountMax) } catch {
            throw Refusal.argument("message", "The request is too large.")
        }
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: body) } catch {
            throw Refusal(
                code: 400,
                status: "INVALID_ARGUMENT",
                message: "Invalid JSON payload received. \(error)"
            )
        }
        let message = try FCMMessage(json)
        let messageID = String(UInt64.random(in: 0..<(1 << 62)))
        let name = "projects/\(credentials.projectID)/messages/\(messageID)"
        if !message.validateOnly {
            try await deliver(message, messageID, request.fields["Tidings-Delivery-Id"], post)
        }
        return HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=UTF-8"],
            body: JSONValue.object(["name": .string(name)]).serialized()
        )
    }

    private func deliver(
        _ message: FCMMessage,
        _ messageID: String,
        _ deliveryID: String?,
        _ post: PostMessage
    ) async throws(Refusal) {
        var headers = ["message-id": messageID]
        if let priority = message.priority { headers["priority"] = priority }
        if let key = message.collapseKey { headers["collapse-key"] = key }
        let result: PostResult
        do {
            result = try await post(
                GatewayMessage(
                    handle: message.handle,
                    data: message.payload.serialized(),
                    headers: headers,
                    expires: message.lifetime > .zero ? time.now + message.lifetime : nil,
                    collapseKey: message.collapseKey,
                    deliveryID: deliveryID
                )
            )
        } catch {
            throw Refusal(code: 500, status: "INTERNAL", message: "Internal error.", errorCode: "INTERNAL")
        }
        switch result {
        case .accepted, .repeated, .dropped: break
        case .unknownHandle:
            throw Refusal.argument(
                "message.token",
                "The registration token is not a valid FCM registration token"
            )
        case .expiredHandle:
            throw Refusal(
                code: 404,
                status: "NOT_FOUND",
                message: "Requested entity was not found.",
                errorCode: "UNREGISTERED"
            )
        case .full:
            throw Refusal(
                code: 429,
                status: "RESOURCE_EXHAUSTED",
                message: "The device has too many pending messages.",
                errorCode: "QUOTA_EXCEEDED"
            )
        case .faulted(let answer): throw Refusal(answer)
        }
    }

    /// What a device gets of a v1 message.
    private struct FCMMessage {
        let handle: PlatformHandle
        let payload: JSONValue
        let priority: String?
        let collapseKey: String?
        let lifetime: Duration
        let validateOnly: Bool

        private static let lifetimeMax = 2_419_200

        init(_ json: JSONValue) throws(Refusal) {
            guard case .object(let message)? = json["message"] else {
                throw Refusal.argument("message", "The message is missing.")
            }
            if let unknown = FCMFields.unknown(in: message) {
                throw Refusal.argument(unknown.path, "Cannot find field: \(unknown.name)")
            }
            validateOnly = (json["validate_only"] ?? json["validateOnly"])?.boolValue ?? false
            let targets = ["token", "topic", "condition", "fid"].filter { message[$0] != nil }
            guard targets.count == 1 else {
                throw Refusal.argument(
                    "message",
                    "Exactly one of token, topic, condition and fid must be set."
                )
            }
            guard let token = (message["token"] ?? message["fid"])?.stringValue,
                let handle = try? PlatformHandle(token, platform: .fcmV1)
            else {
                throw Refusal.argument(
                    "message.token",
                    "The registration token is not a valid FCM registration token"
                )
            }
            self.handle = handle
            let android = message["android"]?.objectValue ?? JSONObject()
            let data = android["data"] ?? message["data"]
            try Self.check(data)
            var payload = JSONObject()
            if let data { payload["data"] = data }
            if let notification = message["notification"] { payload["notification"] = notification }
            if let own = android["notification"] { payload["android"] = .object(["notification": own]) }
            self.payload = .object(payload)
            try Self.checkSize(payload)
            let priority = android["priority"]?.stringValue?.lowercased()
            if let priority, !["normal", "high"].contains(priority) {
                throw Refusal.argument("message.android.priority", "The priority must be NORMAL or HIGH.")
            }
            self.priority = priority
            collapseKey = (android["collapse_key"] ?? android["collapseKey"])?.stringValue
            lifetime = try Self.lifetime(android["ttl"])
        }

        private static func check(_ data: JSONValue?) throws(Refusal) {
            guard let data else { return }
            guard case .object(let object) = data else {
                throw Refusal.argument("message.data", "The data must be an object.")
            }
            for member in object.members {
                guard member.value.stringValue != nil else {
                    throw Refusal.argument(
                        "message.data[0].value",
                        "Invalid value at 'message.data[0].value' (TYPE_STRING)"
                    )
                }
                let isReserved =
                    ["from", "message_type", "gcm"].contains(member.name) || member.name.hasPrefix("google")
                    || member.name.hasPrefix("gcm.notification")
                guard !isReserved else {
                    throw Refusal.argument("message.data", "Invalid data payload key: \(member.name)")
                }
            }
        }

        private static func checkSize(_ payload: JSONObject) throws(Refusal) {
            var count = 0
            for part in ["data", "notification"] {
                for member in payload[part]?.objectValue?.members ?? [] {
                    if part == "data" { count += member.name.utf8.count }
                    count += (member.value.stringValue ?? member.value.text).utf8.count
                }
            }
            guard count <= 4096 else { throw Refusal.argument("message", "Android message is too big") }
        }

        /// `"<seconds>[.fraction]s"`, at most 28 days, which is also the default.
        private static func lifetime(_ ttl: JSONValue?) throws(Refusal) -> Duration {
            guard let ttl else { return .seconds(lifetimeMax) }
            guard let text = ttl.stringValue, text.hasSuffix("s"), let seconds = Double(text.dropLast()),
                (0...Double(lifetimeMax)).contains(seconds)
            else {
                throw Refusal.argument(
                    "message.android.ttl",
                    "Invalid TTL: it must be from 0s to \(lifetimeMax)s."
                )
            }
            return .milliseconds(Int64(seconds * 1000))
        }
    }
}

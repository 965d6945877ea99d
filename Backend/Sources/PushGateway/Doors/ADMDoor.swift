import HTTPMessages
import HTTPServing
import HubAPI
import JSONBytes
import PushCredentials
import TidingsModels

/// `/auth/O2/token` and `/messaging/registrations/{id}/messages`: Amazon's service (push services reference, section 4.2).
struct ADMDoor: Sendable {
    let credentials: GatewayCredentials.ADM
    let tokens: AccessTokens
    let time: any TimeSource

    private static let tokenLife = 3600
    private static let scope = "messaging:push"
    private static let messageType = "com.amazon.device.messaging.ADMMessage@1.0"
    private static let resultType = "com.amazon.device.messaging.ADMSendResult@1.0"
    /// The whole message; its data alone has ``ADMMessage/dataByteCountMax``.
    private static let bodyByteCountMax = 16 << 10
    private static let formByteCountMax = 16 << 10
    private static let retryAfter = 60

    /// An answer that is no success, with Amazon's word for it.
    private struct Refusal: Error {
        let status: HTTPStatus
        let reason: String
        var retryAfter: Int?

        init(_ status: HTTPStatus, _ reason: String, retryAfter: Int? = nil) {
            self.status = status
            self.reason = reason
            self.retryAfter = retryAfter
        }
    }

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        var response: HTTPResponse
        let segments = request.target.segments
        if segments == ["auth", "O2", "token"] {
            response = await token(request)
        } else if segments.count == 4, segments[0] == "messaging", segments[1] == "registrations",
            segments[3] == "messages"
        {
            do throws(Refusal) {
                try await send(request, to: segments[2], post)
                response = json(200, ["registrationID": .string(segments[2])])
            } catch {
                response = json(error.status, ["reason": .string(error.reason)])
                response.fields["Retry-After"] = error.retryAfter.map { String($0) }
            }
        } else {
            response = json(404, ["reason": "NotFound"])
        }
        if response.status.code == 405 { response.fields["Allow"] = "POST" }
        response.fields["X-Amzn-RequestId"] = UUIDText.random()
        return response
    }

    private func json(
        _ status: HTTPStatus,
        _ members: KeyValuePairs<String, JSONValue>
    ) -> HTTPResponse {
        HTTPResponse(
            status,
            ["Content-Type": "application/json"],
            body: JSONValue.object(JSONObject(members)).serialized()
        )
    }

    // MARK: Tokens

    /// RFC 6749 section 4.4, with the errors that Amazon lists.
    private func token(_ request: HTTPRequest) async -> HTTPResponse {
        func refusal(_ status: HTTPStatus, _ error: String, _ description: String) -> HTTPResponse {
            json(status, ["error": .string(error), "error_description": .string(description)])
        }
        guard request.method == "POST" else {
            return refusal(405, "invalid_request", "Only POST is supported.")
        }
        guard
            request.fields["Content-Type"]?.lowercased().hasPrefix("application/x-www-form-urlencoded")
                == true,
            let body = try? await request.body.collect(upTo: Self.formByteCountMax), let form = FormBody(body)
        else { return refusal(400, "invalid_request", "A form must be posted.") }
        guard form["grant_type"] == "client_credentials" else {
            return refusal(400, "invalid_request", "grant_type must be client_credentials.")
        }
        guard let id = form["client_id"], let secret = form["client_secret"] else {
            return refusal(400, "invalid_request", "client_id or client_secret is missing.")
        }
        guard id == credentials.clientID,
            Digests.equal(
                Digests.sha256(Array(secret.utf8)),
                Digests.sha256(Array(credentials.clientSecret.utf8))
            )
        else { return refusal(401, "invalid_client", "The client_id or client_secret is wrong.") }
        guard form["scope"] == Self.scope else {
            return refusal(400, "invalid_scope", "The scope must be \(Self.scope).")
        }
        return json(
            200,
            [
                "access_token": .string(tokens.issue("adm", expires: time.now + .seconds(Self.tokenLife))),
                "expires_in": .number(Self.tokenLife), "scope": .string(Self.scope),
                "token_type": "Bearer",
            ]
        )
    }

    // MARK: Messages

    private func send(
        _ request: HTTPRequest,
        to registrationID: String,
        _ post: PostMessage
    ) async throws(Refusal) {
        guard request.method == "POST" else { throw Refusal(405, "MethodNotAllowed") }
        guard let bearer = AccessTokens.bearer(request.fields),
            tokens.isValid(bearer, for: "adm", now: time.now)
        else { throw Refusal(401, "AccessTokenExpired") }
        guard request.fields["X-Amzn-Type-Version"] == Self.messageType,
            request.fields["X-Amzn-Accept-Type"] == Self.resultType,
            request.fields["Content-Type"]?.lowercased().hasPrefix("application/json") == true
        else { throw Refusal(400, "InvalidType") }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            throw Refusal(413, "MessageTooLarge")
        }
        let message: ADMMessage
        do throws(ADMMessage.Fault) { message = try ADMMessage(body) } catch {
            throw Refusal(error == .messageTooLarge ? 413 : 400, error.rawValue)
        }
        let result: PostResult
        do {
            result = try await post(
                GatewayMessage(
                    handle: PlatformHandle(unchecked: registrationID, platform: .adm),
                    data: body,
                    expires: time.now + message.life,
                    collapseKey: message.consolidationKey,
                    deliveryID: request.fields[HubHeader.deliveryID]
                )
            )
        } catch { throw Refusal(500, "InternalServerError") }
        switch result {
        // Nothing of Amazon's is for devices that are there alone.
        case .accepted, .repeated, .dropped: return
        case .unknownHandle: throw Refusal(400, "InvalidRegistrationId")
        case .expiredHandle: throw Refusal(400, "Unregistered")
        case .full: throw Refusal(429, "MaxRateExceeded", retryAfter: Self.retryAfter)
        case .faulted(let fault):
            throw Refusal(
                fault.status,
                fault.reason ?? word(fault.status.code),
                retryAfter: fault.retryAfter
            )
        }
    }

    /// Amazon's usual word for a status.
    private func word(_ status: Int) -> String {
        switch status {
        case 400: "InvalidData"
        case 401: "AccessTokenExpired"
        case 413: "MessageTooLarge"
        case 429: "MaxRateExceeded"
        case 503: "ServiceUnavailable"
        default: "InternalServerError"
        }
    }
}

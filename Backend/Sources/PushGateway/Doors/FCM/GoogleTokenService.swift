import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import TidingsModels

/// `/token`: access tokens for service accounts (RFC 7523; push services reference, section 2.1).
struct GoogleTokenService: Sendable {
    let credentials: GatewayCredentials.FCM
    let tokens: AccessTokens
    let time: any TimeSource
    let origin: @Sendable () -> String

    private static let tokenLife = 3599
    private static let bodyByteCountMax = 64 << 10
    private static let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    /// google-auth signs this audience whatever the account's `token_uri` says.
    private static let googleAudience = "https://oauth2.googleapis.com/token"

    private struct Refusal: Error {
        let status: HTTPStatus
        let error: String
        let description: String

        init(_ status: HTTPStatus, _ error: String, _ description: String) {
            self.status = status
            self.error = error
            self.description = description
        }
    }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        var fields: HTTPFields = ["Content-Type": "application/json; charset=UTF-8"]
        do throws(Refusal) {
            let token = try await token(request)
            let value = JSONValue.object([
                "access_token": .string(token), "expires_in": .number(Self.tokenLife), "token_type": "Bearer",
            ])
            return HTTPResponse(200, fields, body: value.serialized())
        } catch {
            if error.status.code == 405 { fields["Allow"] = "POST" }
            let value = JSONValue.object([
                "error": .string(error.error), "error_description": .string(error.description),
            ])
            return HTTPResponse(error.status, fields, body: value.serialized())
        }
    }

    private func token(_ request: HTTPRequest) async throws(Refusal) -> String {
        guard request.method == "POST" else {
            throw Refusal(405, "invalid_request", "Only POST is allowed.")
        }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax),
            let form = FormBody(body)
        else { throw Refusal(400, "invalid_request", "The body is not a form.") }
        guard form["grant_type"] == Self.grant else {
            throw Refusal(400, "unsupported_grant_type", "grant_type must be \(Self.grant).")
        }
        guard let text = form["assertion"], let assertion = WebToken(text) else {
            throw Refusal(400, "invalid_grant", "The assertion is not a JWT.")
        }
        guard assertion.claims["iss"]?.stringValue == credentials.clientEmail else {
            throw Refusal(400, "invalid_grant", "The issuer is not a known service account.")
        }
        guard assertion.isSigned(by: credentials.key) else {
            throw Refusal(400, "invalid_grant", "Invalid JWT Signature.")
        }
        guard let audience = assertion.claims["aud"]?.stringValue, isOwn(audience) else {
            throw Refusal(400, "invalid_grant", "The audience is not this token service.")
        }
        let now = time.now.seconds
        guard let issued = assertion.seconds("iat"), let expires = assertion.seconds("exp"), expires > now,
            issued <= now + 300, expires - issued <= 3600
        else {
            throw Refusal(
                400,
                "invalid_grant",
                "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
            )
        }
        return tokens.issue("fcm:" + credentials.projectID, expires: time.now + .seconds(Self.tokenLife))
    }

    /// Loopback has many names and ports that lead here; elsewhere the public address counts.
    private func isOwn(_ audience: String) -> Bool {
        if audience == Self.googleAudience || audience == origin() + "/token" { return true }
        guard let url = HTTPURL(audience) else { return false }
        return url.isLoopback && url.target == "/token"
    }
}

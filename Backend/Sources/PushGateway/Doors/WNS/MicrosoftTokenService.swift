import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import TidingsModels

/// `/accesstoken.srf` (live.com) and `/{tenant}/oauth2/v2.0/token` (Entra): client credentials for WNS (RFC 6749 section 4.4; push
/// services reference, section 3.1).
struct MicrosoftTokenService: Sendable {
    let credentials: GatewayCredentials.WNS
    let tokens: AccessTokens
    let time: any TimeSource

    private static let tokenLife = 86400
    private static let bodyByteCountMax = 16 << 10

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        let isEntra = request.target.segments != ["accesstoken.srf"]
        guard request.method == "POST" else {
            var response = refusal("invalid_request", "Only POST is allowed.")
            response.status = 405
            response.fields["Allow"] = "POST"
            return response
        }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax),
            let form = FormBody(body)
        else { return refusal("invalid_request", "A form must be posted.") }
        guard form["grant_type"] == "client_credentials" else {
            return refusal("unsupported_grant_type", "grant_type must be client_credentials.")
        }
        guard let id = form["client_id"], let secret = form["client_secret"], id == credentials.packageSID,
            Digests.equal(
                Digests.sha256(Array(secret.utf8)),
                Digests.sha256(Array(credentials.secretKey.utf8))
            )
        else { return refusal("invalid_client", "The client_id or client_secret is wrong.") }
        // One of Microsoft's samples has a slash at the end.
        let scopes =
            isEntra
            ? ["https://wns.windows.com/.default", "https://wns.windows.com/.default/"]
            : ["notify.windows.com"]
        guard let scope = form["scope"], scopes.contains(scope) else {
            return refusal("invalid_scope", "The scope must be \(scopes[0]).")
        }
        let expires = time.now + .seconds(Self.tokenLife)
        let token = JSONValue.string(tokens.issue("wns", expires: expires))
        let value: JSONValue =
            isEntra
            ? .object([
                "token_type": "Bearer", "expires_in": .number(Self.tokenLife - 1),
                "ext_expires_in": .number(Self.tokenLife - 1), "access_token": token,
            ])
            : .object([
                "access_token": token, "token_type": "bearer", "expires_in": .number(Self.tokenLife),
            ])
        return HTTPResponse(200, ["Content-Type": "application/json"], body: value.serialized())
    }

    private func refusal(_ error: String, _ description: String) -> HTTPResponse {
        let value = JSONValue.object(["error": .string(error), "error_description": .string(description)])
        return HTTPResponse(400, ["Content-Type": "application/json"], body: value.serialized())
    }
}

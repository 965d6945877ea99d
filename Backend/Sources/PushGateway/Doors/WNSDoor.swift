import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import TidingsModels
import XMLBytes

/// `/accesstoken.srf` and `/wns/?token=…`: Microsoft's service (push services reference, section 3).
struct WNSDoor: Sendable {
    let credentials: GatewayCredentials.WNS
    let tokens: AccessTokens
    let time: any TimeSource

    private static let tokenLife = 86400
    private static let bodyByteCountMax = 5000
    /// A notification without X-WNS-TTL is kept as long as WNS keeps tiles.
    private static let storageDefault = Duration.seconds(3 * 86400)
    private static let types: Set<String> = ["wns/toast", "wns/tile", "wns/badge", "wns/raw"]

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        if request.target.segments == ["accesstoken.srf"] { return await token(request) }
        var response = await send(request, post)
        response.fields["X-WNS-Msg-ID"] = Hex.encode(Digests.random(8)).uppercased()
        response.fields["X-WNS-Debug-Trace"] = "tidings"
        if let vector = request.fields["MS-CV"] { response.fields["MS-CV"] = vector }
        return response
    }

    private func token(_ request: HTTPRequest) async -> HTTPResponse {
        func refusal(_ error: String, _ description: String) -> HTTPResponse {
            HTTPResponse(
                400,
                ["Content-Type": "application/json"],
                body: JSONValue.object(["error": .string(error), "error_description": .string(description)])
                    .serialized()
            )
        }
        guard request.method == "POST", let body = try? await request.body.collect(upTo: 16 << 10),
            let form = FormBody(body)
        else {
            return refusal("invalid_request", "A form must be posted.")
        }
        guard form["grant_type"] == "client_credentials" else {
            return refusal("unsupported_grant_type", "grant_type must be client_credentials.")
        }
        guard let id = form["client_id"], let secret = form["client_secret"], id == credentials.packageSID,
            Digests.equal(
                Digests.sha256(Array(secret.utf8)),
                Digests.sha256(Array(credentials.secretKey.utf8))
            )
        else { return refusal("invalid_client", "The client_id or client_secret is wrong.") }
        guard form["scope"] == "notify.windows.com" else {
            return refusal("invalid_scope", "The scope must be notify.windows.com.")
        }
        let token = tokens.issue("wns", expires: time.now + .seconds(Self.tokenLife))
        return HTTPResponse(
            200,
            ["Content-Type": "application/json"],
            body: JSONValue.object([
                "access_token": .string(token), "token_type": "bearer", "expires_in": .number(Self.tokenLife),
            ]).serialized()
        )
    }

    private func refusal(_ status: HTTPStatus, _ description: String) -> HTTPResponse {
        var fields: HTTPFields = ["X-WNS-Status": "dropped", "X-WNS-Error-Description": description]
        if status.code == 405 { fields["Allow"] = "POST" }
        return HTTPResponse(status, fields)
    }

    private func send(_ request: HTTPRequest, _ post: PostMessage) async -> HTTPResponse {
        guard request.method == "POST" else { return refusal(405, "Only POST is supported on a channel.") }
        guard let bearer = AccessTokens.bearer(request.fields),
            tokens.isValid(bearer, for: "wns", now: time.now)
        else {
            return refusal(401, "The access token is missing, malformed or expired.")
        }
        guard request.fields["Transfer-Encoding"] == nil,
            request.fields["Content-Length"] != nil || request.head.version == .http2
        else {
            return refusal(411, "Content-Length is required; chunked transfer is not supported.")
        }
        guard let type = request.fields["X-WNS-Type"]?.lowercased(), Self.types.contains(type) else {
            return refusal(400, "X-WNS-Type must be wns/toast, wns/tile, wns/badge or wns/raw.")
        }
        let contentType = request.fields["Content-Type"]?.lowercased() ?? ""
        guard contentType.hasPrefix(type == "wns/raw" ? "application/octet-stream" : "text/xml") else {
            return refusal(
                400,
                "Content-Type must be \(type == "wns/raw" ? "application/octet-stream" : "text/xml") for \(type)."
            )
        }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            return refusal(413, "The payload is longer than \(Self.bodyByteCountMax) bytes.")
        }
        guard !body.isEmpty else { return refusal(400, "The payload is empty.") }
        if type != "wns/raw" {
            guard let root = try? XMLElement(parsing: body), "wns/" + root.name.local.lowercased() == type
            else {
                return refusal(400, "The payload is not XML with the root element of \(type).")
            }
        }
        return await deliver(request, type, body, post)
    }

    private func deliver(
        _ request: HTTPRequest,
        _ type: String,
        _ body: [UInt8],
        _ post: PostMessage
    ) async -> HTTPResponse {
        var expires: Timestamp? = time.now + Self.storageDefault
        if let ttl = request.fields["X-WNS-TTL"] {
            guard let seconds = Int(ttl), seconds >= 0, seconds <= 30 * 86400 else {
                return refusal(400, "X-WNS-TTL must be a number of seconds up to 30 days.")
            }
            expires = seconds == 0 ? nil : time.now + .seconds(seconds)
        }
        if request.fields["X-WNS-Cache-Policy"]?.lowercased() == "no-cache" { expires = nil }
        var headers = ["X-WNS-Type": type]
        for name in ["X-WNS-Tag", "X-WNS-Group"] {
            if let value = request.fields[name] { headers[name] = value }
        }
        let collapseKey = request.fields["X-WNS-Tag"].map {
            "\(type)|\(request.fields["X-WNS-Group"] ?? "")|\($0)"
        }
        // A channel is known by its path and token, byte for byte; the host is whatever name leads here.
        let handle = PlatformHandle(unchecked: request.target.raw, platform: .wns)
        let result: PostResult
        do {
            result = try await post(
                GatewayMessage(
                    handle: handle,
                    data: body,
                    headers: headers,
                    expires: expires,
                    collapseKey: collapseKey,
                    deliveryID: request.fields["Tidings-Delivery-Id"]
                )
            )
        } catch { return refusal(500, "Internal error.") }
        switch result {
        case .accepted, .repeated: return HTTPResponse(200, ["X-WNS-Status": "received"])
        case .dropped: return HTTPResponse(200, ["X-WNS-Status": "dropped"])
        case .unknownHandle: return refusal(404, "The channel URI is not known.")
        case .expiredHandle: return refusal(410, "The channel has expired.")
        case .full: return HTTPResponse(200, ["X-WNS-Status": "channelthrottled"])
        case .faulted(let answer):
            var response = refusal(answer.status, answer.reason ?? "This answer was asked for.")
            response.fields["Retry-After"] = answer.retryAfter.map { String($0) }
            return response
        }
    }
}

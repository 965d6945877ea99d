import HTTPMessages
import HTTPServing
import HubAPI
import PushCredentials
import TidingsModels
import XMLBytes

/// `/wns/?token=…`: channels of Microsoft's service (push services reference, section 3).
struct WNSDoor: Sendable {
    private let tokenService: MicrosoftTokenService
    private let mailbox: any Mailbox
    private let isConnected: @Sendable (PlatformHandle) async -> Bool
    private let tokens: AccessTokens
    private let time: any TimeSource
    private static let bodyByteCountMax = 5000

    /// - Parameter isConnected: Whether the device of a channel is connected now.
    init(
        credentials: GatewayCredentials.WNS,
        tokens: AccessTokens,
        time: any TimeSource,
        mailbox: any Mailbox,
        isConnected: @escaping @Sendable (PlatformHandle) async -> Bool
    ) {
        tokenService = MicrosoftTokenService(credentials: credentials, tokens: tokens, time: time)
        self.mailbox = mailbox
        self.isConnected = isConnected
        self.tokens = tokens
        self.time = time
    }

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        guard request.target.segments.first == "wns" else {
            return await tokenService.respond(to: request)
        }
        var response = await answer(request, post)
        response.fields["X-WNS-Msg-ID"] = Hex.encode(Digests.random(8)).uppercased()
        response.fields["X-WNS-Debug-Trace"] = "tidings"
        if let vector = request.fields["MS-CV"] { response.fields["MS-CV"] = vector }
        return response
    }

    private func refusal(_ status: HTTPStatus, _ description: String) -> HTTPResponse {
        var fields: HTTPFields = ["X-WNS-Status": "dropped", "X-WNS-Error-Description": description]
        if status.code == 405 { fields["Allow"] = "POST, DELETE" }
        return HTTPResponse(status, fields)
    }

    private func answer(_ request: HTTPRequest, _ post: PostMessage) async -> HTTPResponse {
        guard request.method == "POST" || request.method == "DELETE" else {
            return refusal(405, "Only POST and DELETE are supported on a channel.")
        }
        guard let bearer = AccessTokens.bearer(request.fields),
            tokens.isValid(bearer, for: "wns", now: time.now)
        else {
            return refusal(401, "The access token is missing, malformed or expired.")
        }
        // A channel is known by its path and token, byte for byte; the host is whatever name leads here.
        let channel = PlatformHandle(unchecked: request.target.raw, platform: .wns)
        if request.method == "DELETE" { return await takeBack(request, channel) }
        guard request.fields["Transfer-Encoding"] == nil,
            request.fields["Content-Length"] != nil || request.head.version == .http2
        else {
            return refusal(411, "Content-Length is required; chunked transfer is not supported.")
        }
        let headers: WNSHeaders
        do throws(WNSHeaders.Refusal) { headers = try WNSHeaders(request.fields) } catch {
            return refusal(400, error.description)
        }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            return refusal(413, "The payload is longer than \(Self.bodyByteCountMax) bytes.")
        }
        guard !body.isEmpty else { return refusal(400, "The payload is empty.") }
        if headers.type != "wns/raw" {
            guard let root = try? XMLElement(parsing: body),
                "wns/" + root.name.local.lowercased() == headers.type
            else {
                return refusal(400, "The payload is not XML with the root element of \(headers.type).")
            }
        }
        var response = await deliver(headers, body, channel, request.fields[HubHeader.deliveryID], post)
        if headers.asksForStatus, response.status.isSuccess {
            response.fields["X-WNS-DeviceConnectionStatus"] =
                await isConnected(channel) ? "connected" : "disconnected"
        }
        return response
    }

    /// Toasts that no device has fetched yet.
    private func takeBack(_ request: HTTPRequest, _ channel: PlatformHandle) async -> HTTPResponse {
        guard let match = request.fields["X-WNS-Match"].flatMap({ WNSMatch($0) }) else {
            return refusal(
                400,
                "X-WNS-Match must be type:wns/toast; followed by group=G;tag=T, one of them, or all."
            )
        }
        do {
            switch try await mailbox.owner(channel) {
            case nil: return refusal(404, "The channel URI is not known.")
            case .removed?: return refusal(410, "The channel has expired.")
            case .live?:
                _ = try await mailbox.remove(channel) { match.fits($0) }
                return HTTPResponse(200, ["X-WNS-Status": "received"])
            }
        } catch { return refusal(500, "Internal error.") }
    }

    private func deliver(
        _ headers: WNSHeaders,
        _ body: [UInt8],
        _ channel: PlatformHandle,
        _ deliveryID: String?,
        _ post: PostMessage
    ) async -> HTTPResponse {
        var shown = ["X-WNS-Type": headers.type]
        shown["X-WNS-Tag"] = headers.tag
        shown["X-WNS-Group"] = headers.group
        let message = GatewayMessage(
            handle: channel,
            data: body,
            headers: shown,
            expires: headers.lifetime.map { time.now + $0 },
            collapseKey: headers.tag.map { "\(headers.type)|\(headers.group ?? "")|\($0)" },
            deliveryID: deliveryID
        )
        let result: PostResult
        do { result = try await post(message) } catch { return refusal(500, "Internal error.") }
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

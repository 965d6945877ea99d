import HTTPMessages
import HubAPI
import HubCore
import JSONBytes
import OutboundHTTP
import PushCredentials
import TidingsModels

/// The requests to Google: one message for one device, and the token request.
enum FCMv1Payload {
    static let scope = "https://www.googleapis.com/auth/firebase.messaging"

    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        token: String,
        settings: FCMv1Settings
    ) -> HTTP2Request {
        var body = payload.body
        if let offset = payload.tokenOffset {
            var handle: [UInt8] = []
            JSONWriter.write(target.handle.text, to: &handle)
            body.insert(contentsOf: handle, at: offset)
        }
        var fields: [HTTP2Request.Field] = [
            .init("authorization", "Bearer " + token),
            .init("content-type", "application/json; charset=utf-8"),
        ]
        if settings.sendsDeliveryID {
            if let trace = TraceID.current {
                fields.append(.init(HubHeader.traceParent, trace.parentHeader))
            }
            fields.append(.init(HubHeader.deliveryID.lowercased(), target.deliveryID, isUnique: true))
        }
        return HTTP2Request(
            path: "/v1/projects/\(PercentEncoding.encode(settings.projectID))/messages:send",
            fields: fields,
            body: body
        )
    }

    /// The JWT bearer grant (RFC 7523) with a signed assertion.
    static func tokenRequest(_ settings: FCMv1Settings, now: Timestamp) throws -> OutboundRequest {
        let assertion = try WebToken.sign(
            header: JSONObject(["alg": "RS256", "typ": "JWT", "kid": .string(settings.privateKeyID)]),
            claims: JSONObject([
                "iss": .string(settings.clientEmail), "scope": .string(scope),
                "aud": .string(settings.tokenURL.description),
                "iat": .number(now.seconds), "exp": .number(now.seconds + 3600),
            ]),
            with: settings.privateKey
        )
        let form = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)"
        return OutboundRequest(
            "POST",
            settings.tokenURL,
            fields: ["Content-Type": "application/x-www-form-urlencoded"],
            body: Array(form.utf8)
        )
    }
}

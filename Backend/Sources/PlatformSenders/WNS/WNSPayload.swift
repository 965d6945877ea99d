import HTTPMessages
import HubAPI
import HubCore
import OutboundHTTP
import TidingsModels

/// The requests to WNS (Microsoft: "Push notification service request and response headers").
enum WNSPayload {
    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        channel: HTTPURL,
        token: String,
        settings: WNSSettings
    ) -> OutboundRequest {
        var fields: HTTPFields = ["Authorization": "Bearer " + token]
        for header in payload.headers { fields.append(header.name, header.value) }
        if settings.sendsDeliveryID, settings.gatewayOrigins.contains(channel.origin) {
            fields.append(HubHeader.deliveryID, target.deliveryID)
            if let trace = TraceID.current { fields.append(HubHeader.traceParent, trace.parentHeader) }
        }
        return OutboundRequest("POST", channel, fields: fields, body: payload.body)
    }

    static func tokenRequest(_ settings: WNSSettings) -> OutboundRequest {
        let form =
            "grant_type=client_credentials&client_id=\(PercentEncoding.encode(settings.packageSID))"
            + "&client_secret=\(PercentEncoding.encode(settings.secretKey))&scope=\(PercentEncoding.encode(settings.scope))"
        return OutboundRequest(
            "POST",
            settings.tokenURL,
            fields: ["Content-Type": "application/x-www-form-urlencoded"],
            body: Array(form.utf8)
        )
    }
}

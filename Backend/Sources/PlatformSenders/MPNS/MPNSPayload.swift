import HTTPMessages
import HubAPI
import HubCore
import OutboundHTTP
import TidingsModels

/// The requests to MPNS (Microsoft: "Sending push notifications for Windows Phone 8"; push services reference, section 4.1).
enum MPNSPayload {
    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        channel: HTTPURL,
        settings: MPNSSettings
    ) -> OutboundRequest {
        // A UUID, which the service echoes: the same one whenever this target is tried again.
        var fields: HTTPFields = ["X-MessageID": target.deliveryID]
        for header in payload.headers { fields.append(header.name, header.value) }
        let isOwn = settings.gatewayOrigins.contains(channel.origin)
        if isOwn {
            fields.append(HubHeader.deliveryID, target.deliveryID)
            if let trace = TraceID.current { fields.append(HubHeader.traceParent, trace.parentHeader) }
        }
        var request = OutboundRequest("POST", channel, fields: fields, body: payload.body)
        // Unauthenticated channels are plain HTTP: no certificate says that the name led to Microsoft.
        request.refusesPrivateAddresses = !isOwn
        return request
    }
}

import HubAPI
import HubCore
import OutboundHTTP
import TidingsModels

/// The request for one device (Apple: "Sending notification requests to APNs").
///
/// Without a token the connection's certificate tells who sends.
enum APNsPayload {
    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        token: String?,
        settings: APNsSettings
    ) -> HTTP2Request {
        var fields: [HTTP2Request.Field] = []
        if let token { fields.append(.init("authorization", "bearer " + token)) }
        if let topic = settings.topic, payload.header("apns-topic") == nil {
            fields.append(.init("apns-topic", topic))
        }
        for header in payload.headers where header.name != "apns-id" {
            fields.append(.init(header.name, header.value))
        }
        if settings.isOwnGateway, let trace = TraceID.current {
            fields.append(.init(HubHeader.traceParent, trace.parentHeader))
        }
        // Different in each request: kept out of the compression table, which it would flush.
        fields.append(.init("apns-id", target.deliveryID, isUnique: true))
        return HTTP2Request(
            path: "/3/device/" + target.handle.text.lowercased(),
            fields: fields,
            body: payload.body
        )
    }
}

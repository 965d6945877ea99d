import HubAPI
import HubCore
import OutboundHTTP
import TidingsModels

/// The requests for some devices (Apple: "Sending notification requests to APNs").
///
/// Without a token the connection's certificate tells who sends.
enum APNsPayload {
    static func requests(
        _ payload: PlatformPayload,
        to targets: [PushTarget],
        token: String?,
        settings: APNsSettings
    ) -> [HTTP2Request] {
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
        return targets.map { target in
            HTTP2Request(
                path: "/3/device/" + target.handle.text.lowercased(),
                // Different in each request: kept out of the compression table, which it would flush.
                fields: fields + [.init("apns-id", target.deliveryID, isUnique: true)],
                body: payload.body
            )
        }
    }
}

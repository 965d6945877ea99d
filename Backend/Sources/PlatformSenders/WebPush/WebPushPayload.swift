import HTTPMessages
import HubAPI
import HubCore
import OutboundHTTP
import PushCredentials
import TidingsModels

/// The request for one subscription (RFC 8030 section 5, RFC 8291).
enum WebPushPayload {
    /// Without a `TTL` of the send: four weeks, as long as the other services keep a message at most.
    static let ttlDefault = "2419200"

    /// The keys of a subscription as bytes; nil when they are none.
    static func receiver(_ keys: SubscriptionKeys?) -> WebPushMessage.Receiver? {
        guard let keys, let point = Base64.decode(keys.p256dh), let auth = Base64.decode(keys.auth) else {
            return nil
        }
        return WebPushMessage.Receiver(point: point, auth: auth)
    }

    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        endpoint: HTTPURL,
        receiver: WebPushMessage.Receiver,
        sender: P256KeyPair,
        authorization: String,
        settings: WebPushSettings
    ) throws(CredentialError) -> OutboundRequest {
        var fields: HTTPFields = [
            "Authorization": authorization, "TTL": payload.header("TTL") ?? ttlDefault,
            "Urgency": payload.header("Urgency") ?? "high",
        ]
        if let topic = payload.header("Topic") { fields.append("Topic", topic) }
        let isOwn = settings.gatewayOrigins.contains(endpoint.origin)
        if isOwn {
            fields.append(HubHeader.deliveryID, target.deliveryID)
            if let trace = TraceID.current { fields.append(HubHeader.traceParent, trace.parentHeader) }
        }
        var body: [UInt8]?
        if !payload.body.isEmpty {
            fields.append("Content-Encoding", "aes128gcm")
            fields.append("Content-Type", "application/octet-stream")
            body = try WebPushMessage.encrypt(
                payload.body,
                to: receiver,
                sender: sender,
                salt: Digests.random(WebPushMessage.saltByteCount)
            )
        }
        var request = OutboundRequest("POST", endpoint, fields: fields, body: body)
        request.refusesPrivateAddresses = !isOwn
        return request
    }
}

import HTTPMessages
import HubAPI
import HubCore
import OutboundHTTP
import TidingsModels

/// The requests to ADM (Amazon: "Sending a message", "Requesting an access token"; push services reference, section 4.2).
enum ADMPayload {
    static let scope = "messaging:push"
    static let messageType = "com.amazon.device.messaging.ADMMessage@1.0"
    static let resultType = "com.amazon.device.messaging.ADMSendResult@1.0"

    /// - Parameter payload: Amazon's envelope: `data`, and `consolidationKey`, `expiresAfter`, `priority`, `md5` as the sender of the
    ///   notification wrote them.
    static func request(
        _ payload: PlatformPayload,
        to target: PushTarget,
        address: HTTPURL,
        token: String,
        settings: ADMSettings
    ) -> OutboundRequest {
        var fields: HTTPFields = [
            "Authorization": "Bearer " + token, "Content-Type": "application/json",
            "Accept": "application/json", "X-Amzn-Type-Version": messageType,
            "X-Amzn-Accept-Type": resultType,
        ]
        if settings.sendsDeliveryID {
            fields.append(HubHeader.deliveryID, target.deliveryID)
            if let trace = TraceID.current { fields.append(HubHeader.traceParent, trace.parentHeader) }
        }
        return OutboundRequest("POST", address, fields: fields, body: payload.body)
    }

    static func tokenRequest(_ settings: ADMSettings) -> OutboundRequest {
        OutboundRequest(
            "POST",
            settings.tokenURL,
            fields: ["Content-Type": FormFields.contentType],
            body: FormFields.body([
                ("grant_type", "client_credentials"), ("scope", scope), ("client_id", settings.clientID),
                ("client_secret", settings.clientSecret),
            ])
        )
    }
}

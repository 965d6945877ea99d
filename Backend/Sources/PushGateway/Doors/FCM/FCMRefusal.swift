import HTTPMessages
import HTTPServing
import JSONBytes

/// A refusal in the form of Google's v1 services (push services reference, section 2.3).
struct FCMRefusal: Error {
    let code: Int
    let status: String
    let message: String
    /// Of the `FcmError` detail.
    var errorCode: String?
    /// Of the `BadRequest` detail.
    var field: String?
    /// Of the `ErrorInfo` detail.
    var reason: String?
    var retryAfter: Int?

    init(
        code: Int,
        status: String,
        message: String,
        errorCode: String? = nil,
        field: String? = nil,
        reason: String? = nil
    ) {
        self.code = code
        self.status = status
        self.message = message
        self.errorCode = errorCode
        self.field = field
        self.reason = reason
    }

    static func argument(_ field: String, _ message: String) -> FCMRefusal {
        FCMRefusal(
            code: 400,
            status: "INVALID_ARGUMENT",
            message: message,
            errorCode: "INVALID_ARGUMENT",
            field: field
        )
    }

    static let badToken = argument(
        "message.token",
        "The registration token is not a valid FCM registration token"
    )

    static let unregistered = FCMRefusal(
        code: 404,
        status: "NOT_FOUND",
        message: "Requested entity was not found.",
        errorCode: "UNREGISTERED"
    )

    static let notFound = FCMRefusal(
        code: 404,
        status: "NOT_FOUND",
        message: "Requested entity was not found."
    )

    static let `internal` = FCMRefusal(
        code: 500,
        status: "INTERNAL",
        message: "Internal error.",
        errorCode: "INTERNAL"
    )

    static let full = FCMRefusal(
        code: 429,
        status: "RESOURCE_EXHAUSTED",
        message: "The device has too many pending messages.",
        errorCode: "QUOTA_EXCEEDED"
    )

    /// - Parameter isExpired: The token was one of ours. Libraries fetch a new one for this reason alone.
    static func unauthenticated(isExpired: Bool) -> FCMRefusal {
        FCMRefusal(
            code: 401,
            status: "UNAUTHENTICATED",
            message: "Request had invalid authentication credentials. Expected OAuth 2 access token.",
            reason: isExpired ? "ACCESS_TOKEN_EXPIRED" : "ACCESS_TOKEN_TYPE_UNSUPPORTED"
        )
    }

    /// Google's words for a status, where no other error code is asked for.
    init(_ fault: FaultAnswer) {
        let words: (status: String, errorCode: String?) =
            switch fault.status.code {
            case 400, 413: ("INVALID_ARGUMENT", "INVALID_ARGUMENT")
            case 401: ("UNAUTHENTICATED", nil)
            case 403: ("PERMISSION_DENIED", "SENDER_ID_MISMATCH")
            case 404, 410: ("NOT_FOUND", "UNREGISTERED")
            case 429: ("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED")
            case 503: ("UNAVAILABLE", "UNAVAILABLE")
            default: ("INTERNAL", "INTERNAL")
            }
        // Google answers with neither.
        code = [410: 404, 413: 400][fault.status.code] ?? fault.status.code
        status = words.status
        message = "This answer was asked for."
        errorCode = fault.reason ?? words.errorCode
        reason = code == 401 && errorCode == nil ? "ACCESS_TOKEN_EXPIRED" : nil
        retryAfter = fault.retryAfter
    }

    private var details: [JSONValue] {
        var details: [JSONValue] = []
        if let errorCode {
            details.append(
                .object([
                    "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                    "errorCode": .string(errorCode),
                ])
            )
        }
        if let reason {
            details.append(
                .object([
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": .string(reason),
                    "domain": "googleapis.com",
                ])
            )
        }
        if let field {
            details.append(
                .object([
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": .array([
                        .object(["field": .string(field), "description": .string(message)])
                    ]),
                ])
            )
        }
        return details
    }

    var response: HTTPResponse {
        var error = JSONObject([
            "code": .number(code), "message": .string(message), "status": .string(status),
        ])
        if !details.isEmpty { error["details"] = .array(details) }
        var fields: HTTPFields = ["Content-Type": "application/json; charset=UTF-8"]
        if code == 405 { fields["Allow"] = "POST" }
        fields["Retry-After"] = retryAfter.map { String($0) }
        return HTTPResponse(
            HTTPStatus(code),
            fields,
            body: JSONValue.object(["error": .object(error)]).serialized()
        )
    }
}

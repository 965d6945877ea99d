import HTTPMessages
import HubCore
import JSONBytes
import OutboundHTTP
import PushCredentials
import TidingsModels

/// The requests to Baidu's REST 3.0 (Baidu: "REST API", "signature"; push services reference, section 4.3).
enum BaiduPayload {
    /// Baidu answers only programs that name an SDK of its own form.
    private static let userAgent = "BCCS_SDK/3.0 (Linux) Tidings (Baidu Push Server SDK V3.0.0)"

    /// - Parameter channelID: The second half of the handle. The user id is of REST 2.0, which Baidu has shut down.
    static func request(
        _ payload: PlatformPayload,
        channelID: String,
        address: HTTPURL,
        now: Timestamp,
        settings: BaiduSettings
    ) -> OutboundRequest {
        var fields: [(name: String, value: String)] = [
            ("apikey", settings.apiKey), ("channel_id", channelID),
            ("msg", String(decoding: payload.body, as: UTF8.self)), ("msg_type", messageType(payload)),
            ("timestamp", String(now.seconds)),
        ]
        fields.append(("sign", sign("POST", address, fields, secretKey: settings.secretKey)))
        return OutboundRequest(
            "POST",
            address,
            fields: ["Content-Type": FormFields.contentType, "User-Agent": userAgent],
            body: FormFields.body(fields)
        )
    }

    /// 1 is a notification, which must have a `description`; 0 is a message for the app alone.
    private static func messageType(_ payload: PlatformPayload) -> String {
        if let given = payload.header("X-Baidu-Message-Type") { return given }
        return (try? JSONValue(parsing: payload.body))?["description"] == nil ? "0" : "1"
    }

    /// MD5 in hex over the URL-encoded method, URL, sorted `name=value` pairs and secret key, all without separators.
    static func sign(
        _ method: String,
        _ address: HTTPURL,
        _ fields: [(name: String, value: String)],
        secretKey: String
    ) -> String {
        let pairs = fields.sorted { $0.name < $1.name }.map { "\($0.name)=\($0.value)" }.joined()
        let text = method + address.description + pairs + secretKey
        // As PHP's urlencode does: a blank is a plus, a tilde is encoded.
        let encoded = PercentEncoding.encode(text).replacing("%20", with: "+").replacing("~", with: "%7E")
        return Hex.encode(Digests.md5(Array(encoded.utf8)))
    }
}

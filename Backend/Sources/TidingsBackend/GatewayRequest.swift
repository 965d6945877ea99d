import HTTPMessages
import JSONBytes
import OutboundHTTP
import ProcessLifecycle

/// What the operator's commands ask a gateway, by `--gateway` and `--ca`.
enum GatewayRequest {
    /// - Parameter refusal: What a status means for which the gateway gives no reason.
    static func send(
        _ method: String,
        _ path: String,
        _ body: JSONValue?,
        _ options: OptionReader,
        refusal: (Int) -> String
    ) async throws -> JSONValue {
        let text = options["gateway"] ?? environment("TIDINGS_GATEWAY") ?? "https://localhost:8082"
        guard let origin = HTTPURL(text)?.origin, let url = HTTPURL(origin + path) else {
            throw OptionError("--gateway '\(text)' is not an http or https URL")
        }
        var trust = OutboundTrust()
        if let file = options["ca"] ?? environment("TIDINGS_CA") { trust.authorityFiles[origin] = file }
        let answer = try await HTTPClient(trust: trust).send(
            OutboundRequest(
                method,
                url,
                fields: body == nil ? [:] : ["Content-Type": "application/json"],
                body: body?.serialized()
            )
        )
        let json = try? JSONValue(parsing: answer.body)
        guard answer.status.isSuccess else {
            throw OptionError(json?["error"]?.stringValue ?? refusal(answer.status.code))
        }
        return json ?? .null
    }
}

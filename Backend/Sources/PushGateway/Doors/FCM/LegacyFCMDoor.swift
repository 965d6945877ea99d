import HTTPMessages
import HTTPServing
import JSONBytes
import TidingsModels

/// `/fcm/send` and `/gcm/send`: what Google shut down in 2024, for back ends that still speak it (push services reference, section 2.6).
struct LegacyFCMDoor: Sendable {
    let access: FCMAccess
    let delivery: FCMDelivery
    private static let bodyByteCountMax = 512 << 10

    func respond(to request: HTTPRequest, post: @escaping PostMessage) async -> HTTPResponse {
        func text(_ status: HTTPStatus, _ text: String) -> HTTPResponse {
            var fields: HTTPFields = ["Content-Type": "text/plain; charset=UTF-8"]
            if status.code == 405 { fields["Allow"] = "POST" }
            return HTTPResponse(status, fields, text: text + "\n")
        }
        guard request.target.segments.count == 2, request.target.segments[1] == "send" else {
            return text(404, "Not found")
        }
        guard request.method == "POST" else { return text(405, "Only POST is allowed.") }
        guard access.hasServerKey(request.fields) else { return text(401, "Unauthorized") }
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            return text(400, "The request is too large.")
        }
        let isForm =
            request.fields["Content-Type"]?.lowercased()
            .hasPrefix("application/x-www-form-urlencoded") ?? false
        let message: LegacyFCMMessage
        do throws(LegacyFCMMessage.Refusal) {
            message = isForm ? try LegacyFCMMessage(form: body) : try LegacyFCMMessage(json: body)
        } catch { return isForm ? text(200, "Error=\(error.form)") : text(400, error.message) }
        switch message.target {
        case .condition(let condition):
            do {
                let id = Self.newID()
                if !message.isDryRun, message.error == nil {
                    try await delivery.deliver(content(message, id), condition, post)
                }
                return json(
                    message.error.map { JSONObject(["error": .string($0)]) }
                        ?? JSONObject(["message_id": .number(id)])
                )
            } catch { return text(500, "InternalServerError") }
        case .tokens(let tokens):
            var results: [Result<UInt64, Failure>] = []
            for token in tokens { results.append(await send(message, token, post)) }
            return isForm ? text(200, Self.line(results.first)) : json(Self.summary(results))
        }
    }

    private struct Failure: Error {
        let error: String
        init(_ error: String) { self.error = error }
    }

    private static func newID() -> UInt64 { .random(in: 1..<(1 << 53)) }

    private func json(_ object: JSONObject) -> HTTPResponse {
        HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=UTF-8"],
            body: JSONValue.object(object).serialized()
        )
    }

    private static func line(_ result: Result<UInt64, Failure>?) -> String {
        switch result {
        case .success(let id)?: "id=0:\(id)"
        case .failure(let failure)?: "Error=\(failure.error)"
        case nil: "Error=MissingRegistration"
        }
    }

    private static func summary(_ results: [Result<UInt64, Failure>]) -> JSONObject {
        let good = results.count { if case .success = $0 { true } else { false } }
        return JSONObject([
            "multicast_id": .number(newID()), "success": .number(good),
            "failure": .number(results.count - good), "canonical_ids": 0,
            "results": .array(
                results.map { result in
                    switch result {
                    case .success(let id): .object(["message_id": .string("0:\(id)")])
                    case .failure(let failure): .object(["error": .string(failure.error)])
                    }
                }
            ),
        ])
    }

    private func content(_ message: LegacyFCMMessage, _ id: UInt64) -> FCMDelivery.Content {
        FCMDelivery.Content(
            id: "0:\(id)",
            payload: message.payload.serialized(),
            priority: message.priority,
            collapseKey: message.collapseKey,
            lifetime: message.lifetime
        )
    }

    private func send(
        _ message: LegacyFCMMessage,
        _ token: String,
        _ post: PostMessage
    ) async -> Result<UInt64, Failure> {
        if let error = message.error { return .failure(Failure(error)) }
        guard let handle = try? PlatformHandle(token, platform: .fcmV1) else {
            return .failure(Failure("InvalidRegistration"))
        }
        let id = Self.newID()
        do {
            if message.isDryRun {
                switch try await delivery.mailbox.owner(handle) {
                case .live?: return .success(id)
                case .removed?: return .failure(Failure("NotRegistered"))
                case nil: return .failure(Failure("InvalidRegistration"))
                }
            }
            switch try await post(delivery.message(content(message, id), handle)) {
            case .accepted, .repeated, .dropped: return .success(id)
            case .unknownHandle: return .failure(Failure("InvalidRegistration"))
            case .expiredHandle: return .failure(Failure("NotRegistered"))
            case .full: return .failure(Failure("DeviceMessageRateExceeded"))
            case .faulted(let fault): return .failure(Failure(Self.error(fault)))
            }
        } catch { return .failure(Failure("InternalServerError")) }
    }

    private static func error(_ fault: FaultAnswer) -> String {
        fault.reason
            ?? [
                400: "InvalidParameters", 403: "MismatchSenderId", 404: "NotRegistered", 410: "NotRegistered",
                413: "MessageTooBig", 429: "DeviceMessageRateExceeded", 503: "Unavailable",
            ][fault.status.code] ?? "InternalServerError"
    }
}

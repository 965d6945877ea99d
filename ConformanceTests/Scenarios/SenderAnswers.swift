import HTTPMessages
import HTTPServing
import HubCore
import JSONBytes
import OutboundHTTP
import PlatformSenders
import Testing
import TidingsConformance
import TidingsModels

/// One answer of a push service, and what our sender makes of it.
struct AnswerRow: Sendable, CustomTestStringConvertible {
    let response: HTTPResponse
    let answer: TargetAnswer

    init(_ status: HTTPStatus, _ answer: TargetAnswer) { self.init(status, [:], "", answer) }

    init(_ status: HTTPStatus, _ fields: HTTPFields, _ answer: TargetAnswer) {
        self.init(status, fields, "", answer)
    }

    init(_ status: HTTPStatus, _ fields: HTTPFields, _ body: String, _ answer: TargetAnswer) {
        response = HTTPResponse(status, fields, text: body)
        self.answer = answer
    }

    var testDescription: String {
        let words = response.fields.lines.map { "\($0.name): \($0.value)" }
        guard case .bytes(let body) = response.body else { return "" }
        return (["\(response.status.code)"] + words + [String(decoding: body, as: UTF8.self)])
            .joined(separator: " ")
    }
}

/// A target of a sender that is tried alone.
enum SenderTrial {
    static let deliveryID = "11111111-2222-3333-4444-555555555555"

    static func answer(
        _ sender: some PlatformSender,
        _ payload: PlatformPayload,
        _ handle: String,
        _ platform: Platform
    ) async throws -> TargetAnswer {
        let target = PushTarget(
            handle: try PlatformHandle(handle, platform: platform),
            deliveryID: deliveryID
        )
        return try #require(await sender.send(payload, to: [target]).first)
    }

    static func payload(
        _ platform: Platform,
        _ body: String,
        _ headers: [RegistrationTemplate.Header] = []
    ) throws -> PlatformPayload {
        try PayloadRules.payload(Array(body.utf8), headers: headers, platform: platform)
    }
}

import HTTPMessages
import HTTPServing
import JSONBytes
import TidingsModels

/// `/iid/…`: topics of many registration tokens at a time (push services reference, section 2.5).
struct InstanceIDDoor: Sendable {
    let access: FCMAccess
    let mailbox: any Mailbox

    private static let tokenCountMax = 1000
    private static let bodyByteCountMax = 512 << 10

    private struct Refusal: Error {
        let status: HTTPStatus
        let error: String
    }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        var fields: HTTPFields = ["Content-Type": "application/json; charset=UTF-8"]
        do throws(Refusal) {
            let value = JSONValue.object(try await answer(request))
            return HTTPResponse(200, fields, body: value.serialized())
        } catch {
            if error.status.code == 405 { fields["Allow"] = "POST" }
            return HTTPResponse(
                error.status,
                fields,
                body: JSONValue.object(["error": .string(error.error)]).serialized()
            )
        }
    }

    private func answer(_ request: HTTPRequest) async throws(Refusal) -> JSONObject {
        let segments = request.target.segments
        let isInfo = segments.count == 3 && segments[1] == "info"
        guard isInfo || segments.count == 2 && ["v1:batchAdd", "v1:batchRemove"].contains(segments[1]) else {
            throw Refusal(status: 404, error: "NOT_FOUND")
        }
        guard request.method == (isInfo ? "GET" : "POST") else {
            throw Refusal(status: 405, error: "METHOD_NOT_ALLOWED")
        }
        guard access.state(request.fields) == .valid else {
            throw Refusal(status: 401, error: "UNAUTHENTICATED")
        }
        if isInfo {
            return try await info(segments[2], hasDetails: request.target.parameter("details") == "true")
        }
        return try await change(request, adds: segments[1] == "v1:batchAdd")
    }

    private func change(_ request: HTTPRequest, adds: Bool) async throws(Refusal) -> JSONObject {
        guard let body = try? await request.body.collect(upTo: Self.bodyByteCountMax),
            let json = try? JSONValue(parsing: body),
            let topic = json["to"]?.stringValue.flatMap({ FCMCondition.topicName($0) }),
            let tokens = json["registration_tokens"]?.arrayValue?.map(\.stringValue),
            (1...Self.tokenCountMax).contains(tokens.count)
        else { throw Refusal(status: 400, error: "INVALID_ARGUMENT") }
        var results: [JSONValue] = []
        for token in tokens {
            let error = await change(token, topic, adds)
            results.append(.object(error.map { JSONObject(["error": .string($0)]) } ?? JSONObject()))
        }
        return JSONObject(["results": .array(results)])
    }

    /// Nil for done.
    private func change(_ token: String?, _ topic: String, _ adds: Bool) async -> String? {
        guard let token, let handle = try? PlatformHandle(token, platform: .fcmV1) else {
            return "INVALID_ARGUMENT"
        }
        do {
            guard case .live? = try await mailbox.owner(handle) else { return "NOT_FOUND" }
            guard adds else {
                _ = try await mailbox.unsubscribe(handle, from: topic)
                return nil
            }
            return try await mailbox.subscribe(handle, to: topic) ? nil : "TOO_MANY_TOPICS"
        } catch { return "INTERNAL" }
    }

    private func info(_ token: String, hasDetails: Bool) async throws(Refusal) -> JSONObject {
        guard let handle = try? PlatformHandle(token, platform: .fcmV1) else {
            throw Refusal(status: 400, error: "INVALID_ARGUMENT")
        }
        do {
            guard case .live(_, let channel)? = try await mailbox.owner(handle) else {
                throw Refusal(status: 404, error: "No information found about this instance id.")
            }
            var answer = JSONObject([
                "application": .string(channel), "platform": "ANDROID",
                "authorizedEntity": .string(access.credentials.projectID),
            ])
            if hasDetails {
                let topics = try await mailbox.topics(of: handle)
                answer["rel"] = .object([
                    "topics": .object(topics.reduce(into: JSONObject()) { $0[$1] = .object(JSONObject()) })
                ])
            }
            return answer
        } catch let refusal as Refusal { throw refusal } catch {
            throw Refusal(status: 500, error: "INTERNAL")
        }
    }
}

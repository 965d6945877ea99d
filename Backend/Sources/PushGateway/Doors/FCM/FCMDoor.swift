import HTTPMessages
import HTTPServing
import HubAPI
import JSONBytes
import PushCredentials
import TidingsModels

/// `/v1/projects/{project}/…`: sends and topic subscriptions (push services reference, sections 2.2 to 2.5).
struct FCMDoor: Sendable {
    let access: FCMAccess
    let delivery: FCMDelivery
    private static let bodyByteCountMax = 64 << 10

    func respond(to request: HTTPRequest, post: @escaping PostMessage) async -> HTTPResponse {
        do throws(FCMRefusal) {
            let segments = request.target.segments
            guard segments.count >= 4, segments[1] == "projects" else { throw FCMRefusal.notFound }
            if segments.count == 4, segments[3] == "messages:send" {
                return Self.answer(try await send(request, post))
            }
            // As firebase-admin 7 asks for them.
            if segments[3] == "registrations", segments.count >= 6, segments[5] == "topicSubscriptions" {
                return Self.answer(try await changeTopic(request, segments))
            }
            throw FCMRefusal.notFound
        } catch { return error.response }
    }

    private static func answer(_ object: JSONObject) -> HTTPResponse {
        HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=UTF-8"],
            body: JSONValue.object(object).serialized()
        )
    }

    private func authenticate(_ request: HTTPRequest) throws(FCMRefusal) {
        let state = access.tokenState(request.fields)
        guard state == .valid else { throw FCMRefusal.unauthenticated(isExpired: state == .expired) }
        guard request.target.segments[2] == access.credentials.projectID else {
            throw FCMRefusal(
                code: 403,
                status: "PERMISSION_DENIED",
                message: "The project '\(request.target.segments[2])' is not this account's."
            )
        }
    }

    private func send(
        _ request: HTTPRequest,
        _ post: @escaping PostMessage
    ) async throws(FCMRefusal) -> JSONObject {
        guard request.method == "POST" else {
            throw FCMRefusal(code: 405, status: "INVALID_ARGUMENT", message: "Only POST is allowed.")
        }
        try authenticate(request)
        let body: [UInt8]
        do { body = try await request.body.collect(upTo: Self.bodyByteCountMax) } catch {
            throw FCMRefusal.argument("message", "The request is too large.")
        }
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: body) } catch {
            throw FCMRefusal(
                code: 400,
                status: "INVALID_ARGUMENT",
                message: "Invalid JSON payload received. \(error)"
            )
        }
        let message = try FCMMessage(json)
        let id = String(UInt64.random(in: 0..<(1 << 62)))
        let content = FCMDelivery.Content(
            id: id,
            payload: message.payload.serialized(),
            priority: message.priority,
            collapseKey: message.collapseKey,
            lifetime: message.lifetime,
            deliveryID: request.fields[HubHeader.deliveryID]
        )
        switch message.target {
        case .handle(let handle) where message.validateOnly:
            try Self.check(try await owner(handle))
        case .handle(let handle): try await deliver(content, handle, post)
        case .condition(let condition) where !message.validateOnly:
            do { try await delivery.deliver(content, condition, post) } catch { throw FCMRefusal.internal }
        case .condition: break
        }
        return JSONObject(["name": .string("projects/\(access.credentials.projectID)/messages/\(id)")])
    }

    private func owner(_ handle: PlatformHandle) async throws(FCMRefusal) -> HandleOwner? {
        do { return try await delivery.mailbox.owner(handle) } catch { throw FCMRefusal.internal }
    }

    private static func check(_ owner: HandleOwner?) throws(FCMRefusal) {
        switch owner {
        case .live?: break
        case .removed?: throw FCMRefusal.unregistered
        case nil: throw FCMRefusal.badToken
        }
    }

    private func deliver(
        _ content: FCMDelivery.Content,
        _ handle: PlatformHandle,
        _ post: PostMessage
    ) async throws(FCMRefusal) {
        let result: PostResult
        do { result = try await post(delivery.message(content, handle)) } catch { throw FCMRefusal.internal }
        switch result {
        case .accepted, .repeated, .dropped: break
        case .unknownHandle: throw FCMRefusal.badToken
        case .expiredHandle: throw FCMRefusal.unregistered
        case .full: throw FCMRefusal.full
        case .faulted(let answer): throw FCMRefusal(answer)
        }
    }

    // MARK: Topics

    /// `POST …/registrations/{token}/topicSubscriptions?topic_name=T`, `DELETE …/topicSubscriptions/T?allow_missing=true`.
    private func changeTopic(
        _ request: HTTPRequest,
        _ segments: [String]
    ) async throws(FCMRefusal) -> JSONObject {
        let isAdding = segments.count == 6 && request.method == "POST"
        guard isAdding || segments.count == 7 && request.method == "DELETE" else {
            throw FCMRefusal.notFound
        }
        try authenticate(request)
        let text = isAdding ? request.target.parameter("topic_name") ?? "" : segments[6]
        guard let topic = FCMCondition.topicName(text) else {
            throw FCMRefusal.argument("topic_name", "Topic name does not match [a-zA-Z0-9-_.~%]+")
        }
        guard let handle = try? PlatformHandle(segments[4], platform: .fcmV1) else {
            throw FCMRefusal.badToken
        }
        try Self.check(try await owner(handle))
        do {
            if isAdding {
                guard try await delivery.mailbox.subscribe(handle, to: topic) else {
                    throw FCMRefusal(
                        code: 429,
                        status: "RESOURCE_EXHAUSTED",
                        message: "The app instance is subscribed to too many topics.",
                        errorCode: "TOO_MANY_TOPICS"
                    )
                }
            } else if try await !delivery.mailbox.unsubscribe(handle, from: topic),
                request.target.parameter("allow_missing") != "true"
            {
                throw FCMRefusal.notFound
            }
        } catch let refusal as FCMRefusal { throw refusal } catch { throw FCMRefusal.internal }
        let place =
            "projects/\(access.credentials.projectID)/registrations/\(handle.text)/topicSubscriptions/\(topic)"
        return isAdding ? JSONObject(["name": .string(place)]) : JSONObject()
    }
}

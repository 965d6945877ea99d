import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import JSONBytes
import TidingsModels

extension HubEdge {
    /// Sends and what became of them (protocol reference, section 5).
    func messages(_ route: HubRoute, _ call: HubCall) async throws -> HTTPResponse {
        let (request, hub) = (call.request, call.hub)
        switch (route, request.method) {
        case (.messages, "POST"):
            try call.authorize(.send)
            let body = try await request.body.collect(upTo: Hub.notificationByteCountMax)
            let (notification, recipients) = try NotificationRequest.read(request, body: body)
            if try NotificationRequest.isSet("explain", request.target) {
                let explanation =
                    switch recipients {
                    case .tags(let tags): try await hub.explain(notification, tags: tags)
                    case .handles(let handles): try await hub.explain(notification, to: handles)
                    }
                return HTTPResponse(
                    200,
                    ["Content-Type": "application/json; charset=utf-8"],
                    text: SendExplanationJSON.value(explanation).text
                )
            }
            if try NotificationRequest.isSet("test", request.target) {
                let (id, outcome) =
                    switch recipients {
                    case .tags(let tags): try await hub.testSend(notification, tags: tags)
                    case .handles(let handles): try await hub.testSend(notification, to: handles)
                    }
                return accepted(call, .message(id), NotificationOutcomeXML.text(outcome))
            }
            let id =
                switch recipients {
                case .tags(let tags): try await hub.send(notification, tags: tags)
                case .handles(let handles): try await hub.send(notification, to: handles)
                }
            return accepted(call, .message(id))
        case (.batch, "POST"):
            try call.authorize(.send)
            let body = try await request.body.collect(upTo: NotificationRequest.batchByteCountMax)
            let (notification, handles) = try NotificationRequest.readBatch(request.fields, body: body)
            return accepted(call, .message(try await hub.send(notification, to: handles)))
        case (.scheduledMessages, "POST"):
            try call.authorize(.send)
            let time = try NotificationRequest.scheduleTime(request.fields)
            let body = try await request.body.collect(upTo: Hub.notificationByteCountMax)
            let (notification, recipients) = try NotificationRequest.read(request, body: body)
            guard case .tags(let tags) = recipients else {
                throw HubError(.badRequest, "A direct send cannot be scheduled.")
            }
            return accepted(call, .scheduledMessage(try await hub.send(notification, tags: tags, at: time)))
        case (.scheduledMessage(_, let id), "DELETE"):
            try call.authorize(.send)
            try await hub.cancel(id)
            return HTTPResponse(200)
        case (.message(_, let id), "GET"), (.message(_, let id), "HEAD"),
            (.scheduledMessage(_, let id), "GET"), (.scheduledMessage(_, let id), "HEAD"):
            try call.authorize(.send)
            let details = try await hub.details(id)
            let location = "sb" + call.address.url(.message(details.id)).drop { $0 != ":" }
            var response = HTTPResponse(
                200,
                Self.xml,
                text: NotificationDetailsXML.text(
                    details,
                    location: location,
                    errorDetails: errorDetails(call, details)
                )
            )
            response.fields[HubHeader.traceID] = details.trace?.text
            return response
        case (.message, _): throw call.methodNotAllowed("GET")
        case (.scheduledMessage, _): throw call.methodNotAllowed("GET, DELETE")
        default: throw call.methodNotAllowed("POST")
        }
    }

    static let xml: HTTPFields = ["Content-Type": "application/xml; charset=utf-8"]

    private func accepted(
        _ call: HubCall,
        _ entity: RequestAddress.Entity,
        _ text: String = ""
    ) -> HTTPResponse {
        var fields = Self.xml
        fields["Location"] = call.address.url(entity)
        return HTTPResponse(201, fields, text: text)
    }
}

import HTTPMessages
package import HTTPServing
import HubAPI
package import HubCore
package import PushTelemetry
import Synchronization
package import TidingsModels

/// The hubs of a server by name; names compare without case.
package final class HubDirectory: Sendable {
    private let hubs: Mutex<[String: Hub]>

    package init(_ hubs: [Hub]) {
        self.hubs = Mutex(Dictionary(hubs.map { ($0.name.lowercased(), $0) }) { first, _ in first })
    }

    package subscript(name: String) -> Hub? { hubs.withLock { $0[name.lowercased()] } }
    package var all: [Hub] { hubs.withLock { Array($0.values) } }
}

/// The hub's HTTP edge: authorise, decode, call the hub, encode.
package struct HubEdge: Sendable {
    private let hubs: HubDirectory
    private let authorizer: Authorizer
    private let log: Log
    private let counters: Counters
    private let time: any TimeSource
    private let identifier: @Sendable () -> String

    /// - Parameter identifier: A new GUID at each call.
    package init(
        hubs: HubDirectory,
        authorizer: Authorizer,
        log: Log,
        counters: Counters,
        time: any TimeSource,
        identifier: @escaping @Sendable () -> String
    ) {
        self.hubs = hubs
        self.authorizer = authorizer
        self.log = log
        self.counters = counters
        self.time = time
        self.identifier = identifier
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let trackingID = request.fields[HubHeader.trackingID].flatMap(Self.guid) ?? identifier()
        let trace = TraceID(parent: request.fields[HubHeader.traceParent]) ?? TraceID(guid: trackingID)
        return await TraceID.$current.withValue(trace) { await respond(to: request, trackingID) }
    }

    private func respond(to request: HTTPRequest, _ trackingID: String) async -> HTTPResponse {
        var response: HTTPResponse
        do {
            response = try await answer(request)
        } catch let error as HubError {
            response = refusal(error, trackingID)
        } catch RequestBodyError.tooLarge(let countMax) {
            response = refusal(
                HubError(.tooLarge, "The request body is longer than \(countMax) bytes."),
                trackingID
            )
        } catch {
            log.error(
                "hub_request_failed",
                ["tracking_id": .string(trackingID), "reason": .string(String(describing: error))]
            )
            response = refusal(
                HubError(.internalError, "The hub could not do this. Its log has the reason."),
                trackingID
            )
        }
        response.fields[HubHeader.trackingID] = trackingID
        response.fields[HubHeader.correlationID] = identifier()
        // The telemetry of a send names the send's own.
        if response.fields[HubHeader.traceID] == nil, let trace = TraceID.current {
            response.fields[HubHeader.traceID] = trace.text
        }
        counters.add("hub_responses_total{status=\"\(response.status.code)\"}")
        return response
    }

    private func refusal(_ error: HubError, _ trackingID: String) -> HTTPResponse {
        var fields: HTTPFields = ["Content-Type": "application/xml; charset=utf-8"]
        if error.code == .unauthorized { fields["WWW-Authenticate"] = "SharedAccessSignature" }
        if let seconds = error.retryAfterSeconds { fields["Retry-After"] = String(seconds) }
        return HTTPResponse(
            HTTPStatus(error.httpStatus),
            fields,
            text: HubErrorXML.text(error, trackingID: trackingID, now: time.now)
        )
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let route = HubRoute(request.target) else {
            throw HubError(
                .notFound,
                "There is nothing at '\(request.target.rawPath)'. A hub has /{hub}/registrations, registrationids, tags/{tag}/registrations and "
                    + "messages; docs/compatibility.md tells what is not offered."
            )
        }
        guard let hub = hubs[route.hub] else {
            throw HubError(.notFound, "The hub '\(route.hub)' does not exist.")
        }
        try request.fields.refuseContentCoding()
        @discardableResult
        func authorize(_ right: AccessRights) throws -> RegistrationWriter {
            let policy = try authorizer.check(request.head, right, at: hub, now: time.now)
            return RegistrationWriter(policy.rights, hub.listenMode)
        }
        let address = RequestAddress(request.head, hub: hub.name)

        switch (route, request.method) {
        case (.registrationIDs, "POST"):
            try authorize(.listen)
            let url = address.url(.registrationID(hub.newRegistrationID()))
            return HTTPResponse(201, ["Location": url, "Content-Location": url])
        case (.registrations, "POST"):
            let writer = try authorize(.listen)
            let body = try RegistrationXML.readRequest(
                try await request.body.collect(upTo: RegistrationRules.bodyByteCountMax)
            )
            let registration = try await hub.create(body.content, by: writer)
            var response = entry(registration, address)
            response.fields["Content-Location"] = address.url(.registration(registration.id))
            return response
        case (.registrations, "GET"), (.registrations, "HEAD"):
            let filter = try RegistrationQuery.filter(request.target)
            try authorize(filter == .all ? .manage : .listen)
            return try await list(hub, filter, request.target, address)
        case (.taggedRegistrations(_, let tag), "GET"), (.taggedRegistrations(_, let tag), "HEAD"):
            try authorize(.manage)
            let tag = try HubTag(system: tag) ?? HubTag(tag)
            return try await list(hub, .tag(tag), request.target, address)
        case (.registration(_, let id), "PUT"):
            let writer = try authorize(.listen)
            let condition = try EntityCondition(ifMatch: request.fields["If-Match"])
            let body = try RegistrationXML.readRequest(
                try await request.body.collect(upTo: RegistrationRules.bodyByteCountMax)
            )
            return entry(
                try await hub.put(id, bodyID: body.id, body.content, condition, by: writer),
                address
            )
        case (.registration(_, let id), "GET"), (.registration(_, let id), "HEAD"):
            try authorize(.listen)
            return entry(try await hub.registration(id), address)
        case (.registration(_, let id), "DELETE"):
            let writer = try authorize(.listen)
            try await hub.delete(id, try EntityCondition(ifMatch: request.fields["If-Match"]), by: writer)
            return HTTPResponse(200)
        case (.installation(_, let id), _):
            return try await installation(id, request, hub, by: try authorize(.listen))
        case (.messages, "POST"):
            try authorize(.send)
            let (notification, tags) = try NotificationRequest.read(
                request,
                body: try await request.body.collect(upTo: Hub.notificationByteCountMax)
            )
            let id: NotificationID
            var text = ""
            if try NotificationRequest.isTest(request.target) {
                let outcome: NotificationOutcome
                (id, outcome) = try await hub.testSend(notification, tags: tags)
                text = NotificationOutcomeXML.text(outcome)
            } else {
                id = try await hub.send(notification, tags: tags)
            }
            counters.add("hub_notifications_accepted_total")
            return HTTPResponse(
                201,
                ["Location": address.url(.message(id)), "Content-Type": "application/xml; charset=utf-8"],
                text: text
            )
        case (.scheduledMessages, "POST"):
            try authorize(.send)
            let time = try NotificationRequest.scheduleTime(request.fields)
            let (notification, tags) = try NotificationRequest.read(
                request,
                body: try await request.body.collect(upTo: Hub.notificationByteCountMax)
            )
            let id = try await hub.send(notification, tags: tags, at: time)
            counters.add("hub_notifications_accepted_total")
            return HTTPResponse(
                201,
                [
                    "Location": address.url(.scheduledMessage(id)),
                    "Content-Type": "application/xml; charset=utf-8",
                ]
            )
        case (.scheduledMessage(_, let id), "DELETE"):
            try authorize(.send)
            try await hub.cancel(id)
            return HTTPResponse(200)
        case (.message(_, let id), "GET"), (.message(_, let id), "HEAD"):
            try authorize(.send)
            let details = try await hub.details(id)
            let location = "sb" + address.url(.message(details.id)).drop { $0 != ":" }
            var response = HTTPResponse(
                200,
                ["Content-Type": "application/xml; charset=utf-8"],
                text: NotificationDetailsXML.text(details, location: location)
            )
            response.fields[HubHeader.traceID] = details.trace?.text
            return response
        default:
            throw HubError(
                .methodNotAllowed,
                "\(request.method) is not allowed at '\(request.target.rawPath)'."
            )
        }
    }

    private func entry(_ registration: Registration, _ address: RequestAddress) -> HTTPResponse {
        HTTPResponse(
            200,
            [
                "Content-Type": "application/atom+xml; type=entry; charset=utf-8",
                "ETag": "W/\"\(registration.etag)\"",
            ],
            text: RegistrationXML.entry(registration, url: address.url(.registration(registration.id)))
        )
    }

    private func list(
        _ hub: Hub,
        _ filter: RegistrationFilter,
        _ target: RequestTarget,
        _ address: RequestAddress
    ) async throws -> HTTPResponse {
        let countMax = try RegistrationQuery.countMax(target)
        var after = try RegistrationQuery.continuation(target)
        if let skip = try RegistrationQuery.skip(target), skip > 0 {
            // The old node SDK pages by position: walk there.
            var left = skip
            while left > 0 {
                let page = try await hub.registrations(filter, after: after, countMax: left)
                guard let next = page.next else { return feed([], target, nil, address) }
                left -= page.registrations.count
                after = next
            }
        }
        let page = try await hub.registrations(filter, after: after, countMax: countMax)
        return feed(page.registrations, target, page.next, address)
    }

    private func feed(
        _ registrations: [Registration],
        _ target: RequestTarget,
        _ next: UInt32?,
        _ address: RequestAddress
    ) -> HTTPResponse {
        let token = next.map(RegistrationQuery.token)
        var response = HTTPResponse(
            200,
            ["Content-Type": "application/atom+xml; type=feed; charset=utf-8"],
            text: RegistrationXML.feed(
                registrations,
                url: address.requestURL,
                updated: time.now,
                nextURL: token.map { address.nextPage(token: $0) },
                entryURL: { address.url(.registration($0.id)) }
            )
        )
        if let token { response.fields[HubHeader.continuation] = token }
        return response
    }

    private static func guid(_ text: String) -> String? {
        let isGUID =
            text.utf8.count == 36
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hex.digit(byte) != nil
            }
        return isGUID ? text : nil
    }
}

/// Absolute addresses as the client sees this server, with the query of its request.
struct RequestAddress {
    enum Entity {
        case registrationID(RegistrationID)
        case registration(RegistrationID)
        case message(NotificationID)
        case scheduledMessage(NotificationID)
    }

    private let origin: String
    private let hub: String
    private let target: RequestTarget

    init(_ head: HTTPRequestHead, hub: String) {
        origin = "\(head.scheme)://\(head.authority.isEmpty ? "localhost" : head.authority)"
        self.hub = hub
        target = head.target
    }

    var requestURL: String { origin + target.raw }

    /// The request's address with another continuation token.
    func nextPage(token: String) -> String {
        let kept = target.rawQuery.dropFirst().split(separator: "&").filter {
            !$0.lowercased().hasPrefix("continuationtoken=")
        }
        return origin + target.rawPath + "?" + (kept + ["continuationtoken=\(token)"]).joined(separator: "&")
    }

    func url(_ entity: Entity) -> String {
        let path =
            switch entity {
            case .registrationID(let id): HubRoute.registrationIDs(hub: hub).path + "/\(id)"
            case .registration(let id): HubRoute.registration(hub: hub, id: id.text).path
            case .message(let id): HubRoute.message(hub: hub, id: id.text).path
            case .scheduledMessage(let id): HubRoute.scheduledMessage(hub: hub, id: id.text).path
            }
        return origin + path + target.rawQuery
    }
}

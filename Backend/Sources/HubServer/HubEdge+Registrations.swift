import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import TidingsModels

extension HubEdge {
    /// The operations on registrations (protocol reference, section 3).
    func registrations(_ route: HubRoute, _ call: HubCall) async throws -> HTTPResponse {
        let (request, hub, address) = (call.request, call.hub, call.address)
        func body() async throws -> RegistrationXML.Request {
            try RegistrationXML.readRequest(
                try await request.body.collect(upTo: RegistrationRules.bodyByteCountMax)
            )
        }
        switch (route, request.method) {
        case (.registrationIDs, "POST"):
            try call.authorize(.listen)
            let url = address.url(.registrationID(hub.newRegistrationID()))
            return HTTPResponse(201, ["Location": url, "Content-Location": url])
        case (.registrations, "POST"):
            let writer = try call.authorize(.listen)
            let registration = try await hub.create(try await body().content, by: writer)
            var response = entry(registration, address)
            response.fields["Content-Location"] = address.url(.registration(registration.id))
            return response
        case (.registrations, "GET"), (.registrations, "HEAD"):
            let filter = try RegistrationQuery.filter(request.target)
            try call.authorize(filter == .all ? .manage : .listen)
            return try await list(filter, call)
        case (.taggedRegistrations(_, let tag), "GET"), (.taggedRegistrations(_, let tag), "HEAD"):
            try call.authorize(.manage)
            return try await list(.tag(try HubTag(system: tag) ?? HubTag(tag)), call)
        case (.registration(_, let id), "PUT"):
            let writer = try call.authorize(.listen)
            let condition = try EntityCondition(ifMatch: request.fields["If-Match"])
            let sent = try await body()
            return entry(try await hub.put(id, bodyID: sent.id, sent.content, condition, by: writer), address)
        case (.registration(_, let id), "GET"), (.registration(_, let id), "HEAD"):
            try call.authorize(.listen)
            return entry(try await hub.registration(id), address)
        case (.registration(_, let id), "DELETE"):
            let writer = try call.authorize(.listen)
            try await hub.delete(id, try EntityCondition(ifMatch: request.fields["If-Match"]), by: writer)
            return HTTPResponse(200)
        case (.registrationIDs, _): throw call.methodNotAllowed("POST")
        case (.registrations, _): throw call.methodNotAllowed("GET, POST")
        case (.registration, _): throw call.methodNotAllowed("GET, PUT, DELETE")
        default: throw call.methodNotAllowed("GET")
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
        _ filter: RegistrationFilter,
        _ call: HubCall
    ) async throws -> HTTPResponse {
        let (hub, target, address) = (call.hub, call.target, call.address)
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
}

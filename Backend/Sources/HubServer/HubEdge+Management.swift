import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import PushTelemetry
import TidingsModels

extension HubEdge {
    private static let entryType: HTTPFields = [
        "Content-Type": "application/atom+xml; type=entry; charset=utf-8"
    ]
    private static let feedType: HTTPFields = [
        "Content-Type": "application/atom+xml; type=feed; charset=utf-8"
    ]

    /// Making, changing and deleting hubs (protocol reference, section 9.1). A hub's own key with Manage reads and changes that hub; making,
    /// deleting and listing takes one of the namespace.
    func manage(_ name: String, _ request: HTTPRequest) async throws -> HTTPResponse {
        let url = RequestAddress(request.head, hub: name).requestURL
        let condition = try EntityCondition(ifMatch: request.fields["If-Match"])
        switch request.method {
        case "PUT" where condition == .none:
            try authorizeNamespace(request)
            let made = try await hubs.create(try await description(name, request))
            return entry(201, HubDescriptionXML.entry(made, namespace: namespace(request), url: url))
        case "PUT":
            try authorizeHub(name, request)
            let updated = try await hubs.update(try await description(name, request))
            return entry(
                200,
                HubDescriptionXML.entry(updated, namespace: namespace(request), url: url, isUpdate: true)
            )
        case "GET", "HEAD":
            try authorizeHub(name, request)
            guard let hub = hubs.hub(name), let found = await hubs.description(name) else {
                throw Self.noHub(name)
            }
            let count = try await hub.registrationCount()
            let usage = HubDescriptionXML.Usage(
                deviceCount: count.devices,
                registrationCount: count.registrations,
                callCount: counters["hub_calls_total{hub=\"\(hub.name)\"}"]
            )
            return entry(
                200,
                HubDescriptionXML.entry(found, namespace: namespace(request), url: url, usage: usage)
            )
        case "DELETE":
            try authorizeNamespace(request)
            try await hubs.delete(name)
            return HTTPResponse(200)
        default:
            throw HubError.methodNotAllowed(request.method, at: "on a hub", allowed: "GET, PUT, DELETE")
        }
    }

    /// The hubs: titles alone at the root, as .NET reads them, or whole entries, as Java does.
    func list(isFull: Bool, _ request: HTTPRequest) async throws -> HTTPResponse {
        guard ["GET", "HEAD"].contains(request.method) else {
            throw HubError.methodNotAllowed(request.method, at: "on the list of hubs", allowed: "GET")
        }
        try authorizeNamespace(request)
        let skip = try RegistrationQuery.skip(request.target) ?? 0
        let top =
            request.target.parameter("$top") == nil
            ? Int.max : try RegistrationQuery.number("$top", request.target) ?? .max
        let page = await hubs.descriptions().dropFirst(skip).prefix(top).map {
            (hub: $0, url: RequestAddress(request.head, hub: $0.name).hubURL)
        }
        let url = RequestAddress(request.head, hub: "").requestURL
        let text =
            isFull
            ? HubDescriptionXML.feed(page, namespace: namespace(request), url: url, updated: time.now)
            : HubDescriptionXML.serviceFeed(page, id: url, updated: time.now)
        return HTTPResponse(200, Self.feedType, text: text)
    }

    private func description(_ name: String, _ request: HTTPRequest) async throws -> HubDescription {
        let body = try await request.body.collect(upTo: HubDescriptionRules.bodyByteCountMax)
        return try HubDescriptionXML.read(body, name: name)
    }

    private func entry(_ status: HTTPStatus, _ text: String) -> HTTPResponse {
        HTTPResponse(status, Self.entryType, text: text)
    }

    /// The first label of the host: what a namespace is called.
    private func namespace(_ request: HTTPRequest) -> String {
        SharedAccessHost.firstLabel(request.head.authority)
    }

    func authorizeNamespace(_ request: HTTPRequest) throws(HubError) {
        _ = try authorizer.check(
            request.head,
            .manage,
            policies: hubs.namespacePolicies,
            of: "the namespace",
            now: time.now
        )
    }

    private func authorizeHub(_ name: String, _ request: HTTPRequest) throws(HubError) {
        _ = try authorizer.check(
            request.head,
            .manage,
            policies: (hubs.hub(name)?.settings.policies ?? []) + hubs.namespacePolicies,
            of: "the hub '\(name)' or of the namespace",
            now: time.now
        )
    }

    private static func noHub(_ name: String) -> HubError {
        HubError(.notFound, "The hub '\(name)' does not exist.")
    }
}

private enum SharedAccessHost {
    static func firstLabel(_ authority: String) -> String {
        String(authority.prefix { $0 != "." && $0 != ":" })
    }
}

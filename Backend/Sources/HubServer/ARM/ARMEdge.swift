import HTTPMessages
package import HTTPServing
package import HubCore
import JSONBytes
import PushCredentials
package import PushTelemetry
package import TidingsModels

/// The part of Azure Resource Manager that `azure-mgmt-notificationhubs` calls, on a listener of its own. A server has one namespace: the
/// first PUT names it, and any subscription and resource group will do. Requests carry the operator's token.
package struct ARMEdge: Sendable {
    private let hubs: any HubManagement
    private let token: [UInt8]
    let log: Log
    let time: any TimeSource
    /// Of a key, for every hub.
    private let connectionString: @Sendable (AccessPolicy, _ key: String) -> String

    package init(
        hubs: any HubManagement,
        token: [UInt8],
        log: Log,
        time: any TimeSource,
        connectionString: @escaping @Sendable (AccessPolicy, _ key: String) -> String
    ) {
        self.hubs = hubs
        self.token = token
        self.log = log
        self.time = time
        self.connectionString = connectionString
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        do {
            return try await answer(request)
        } catch let error as HubError {
            var fields: HTTPFields = ["Content-Type": Self.type]
            if error.code == .unauthorized { fields["WWW-Authenticate"] = "Bearer" }
            fields["Allow"] = error.allowedMethods
            if let seconds = error.retryAfterSeconds { fields["Retry-After"] = String(seconds) }
            return HTTPResponse(HTTPStatus(error.httpStatus), fields, text: ARMJSON.error(error).text)
        } catch {
            log.error("arm_request_failed", ["reason": .string(String(describing: error))])
            let failure = HubError(.internalError, "The server could not do this. Its log has the reason.")
            return HTTPResponse(500, ["Content-Type": Self.type], text: ARMJSON.error(failure).text)
        }
    }

    private static let type = "application/json; charset=utf-8"
    private static let provider = "Microsoft.NotificationHubs"
    private static let bodyByteCountMax = 256 << 10

    private func json(_ status: HTTPStatus, _ value: JSONValue) -> HTTPResponse {
        HTTPResponse(status, ["Content-Type": Self.type], text: value.text)
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        let given = request.fields["Authorization"] ?? ""
        guard given.lowercased().hasPrefix("bearer "), Digests.equal(Array(given.utf8.dropFirst(7)), token)
        else {
            throw HubError(
                .unauthorized,
                "The request needs 'Authorization: Bearer' with the token of arm.tokenFile."
            )
        }
        guard let route = ARMRoute(request.target) else {
            throw HubError(.notFound, "There is nothing at '\(request.target.rawPath)'.")
        }
        switch (route, request.method) {
        case (.operations, "GET"):
            return json(
                200,
                ARMJSON.list([operation("namespaces"), operation("namespaces/notificationHubs")])
            )
        case (.checkNamespace, "POST"):
            let name = try await body(request)["name"]?.stringValue ?? ""
            let isFree =
                hubs.namespace["name"] == nil
                || hubs.namespace["name"]?.stringValue?.lowercased() == name.lowercased()
            return json(200, availability(name, isFree))
        case (.checkHub(let namespace), "POST"):
            try check(namespace)
            let name = try await body(request)["name"]?.stringValue ?? ""
            return json(200, availability(name, hubs.hub(name) == nil))
        case (.namespaces, "GET"):
            let name = hubs.namespace["name"]?.stringValue
            return json(200, ARMJSON.list(name.map { [namespaceResource($0, request)] } ?? []))
        case (.resource(.namespace(let name)), _): return try await namespace(name, request)
        case (.hubs(let namespace), "GET"):
            try check(namespace)
            return json(
                200,
                ARMJSON.list(await hubs.descriptions().map { hubResource($0, request, listed: true) })
            )
        case (.resource(.hub(let name, let namespace)), _):
            try check(namespace)
            return try await hub(name, request)
        case (.debugSend(.hub(let name, let namespace)), "POST"):
            try check(namespace)
            guard let hub = hubs.hub(name) else { throw Self.noHub(name) }
            let notification = try Self.notification(
                try await request.body.collect(upTo: Hub.notificationByteCountMax)
            )
            let (_, outcome) = try await hub.testSend(notification, tags: "")
            return json(
                201,
                resource(request, name, "namespaces/notificationHubs", ARMJSON.debugSend(outcome))
            )
        case (.credentials(.hub(let name, let namespace)), "POST"):
            try check(namespace)
            let description = try await existing(name)
            return json(
                200,
                resource(
                    request,
                    name,
                    "namespaces/notificationHubs/pnsCredentials",
                    ARMJSON.credentials(description)
                )
            )
        case (.rules(let owner), "GET"):
            return json(200, ARMJSON.list(try await policies(owner).map { rule($0, request, listed: true) }))
        case (.rule(let owner, let name), _): return try await rule(owner, name, request)
        case (.listKeys(let owner, let name), "POST"):
            let policy = try await policy(owner, name)
            return json(200, ARMJSON.keys(policy) { connectionString(policy, $0) })
        case (.regenerateKeys(let owner, let name), "POST"):
            var policy = try await policy(owner, name)
            switch try await body(request)["policyKey"]?.stringValue?.lowercased() {
            case "primarykey": policy.primaryKey = ""
            case "secondarykey": policy.secondaryKey = ""
            default: throw HubError(.badRequest, "'policyKey' is PrimaryKey or SecondaryKey.")
            }
            let new = try await set(policy, of: owner)
            return json(200, ARMJSON.keys(new) { connectionString(new, $0) })
        default:
            // What is left has one method: an action POST, a list GET.
            throw HubError.methodNotAllowed(
                request.method,
                at: "at '\(request.target.rawPath)'",
                allowed: request.method == "POST" ? "GET" : "POST"
            )
        }
    }

    private func body(_ request: HTTPRequest) async throws -> JSONObject {
        let bytes = try await request.body.collect(upTo: Self.bodyByteCountMax)
        if bytes.isEmpty { return JSONObject() }
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not JSON: \(error).")
        }
        guard let object = value.objectValue else {
            throw HubError(.badRequest, "The body must be a JSON object.")
        }
        return object
    }

    // MARK: Resources

    private func operation(_ resource: String) -> JSONValue {
        .object([
            "name": .string("\(Self.provider)/\(resource)/*"),
            "display": .object([
                "provider": .string(Self.provider), "resource": .string(resource),
                "operation": "All operations",
            ]),
        ])
    }

    private func availability(_ name: String, _ isFree: Bool) -> JSONValue {
        .object([
            "id": .string(name), "name": .string(name), "type": .string(Self.provider), "location": "local",
            "isAvailiable": .bool(isFree),
        ])
    }

    private func resource(
        _ request: HTTPRequest,
        _ name: String,
        _ type: String,
        _ properties: JSONObject
    ) -> JSONValue {
        ARMJSON.resource(
            id: String(request.target.rawPath),
            name: name,
            type: "\(Self.provider)/\(type)",
            hubs.namespace,
            properties
        )
    }

    private func namespaceResource(_ name: String, _ request: HTTPRequest) -> JSONValue {
        let words = request.target.segments
        let subscription = words.count > 1 ? words[1] : ""
        let created = hubs.namespace["created"]?.stringValue ?? time.now.description
        let properties = JSONObject([
            "name": .string(name), "provisioningState": "Succeeded", "region": "local", "status": "Active",
            "createdAt": .string(created), "updatedAt": .string(created),
            "serviceBusEndpoint": .string(
                connectionString(AccessPolicy(name: "", rights: []), "").split(separator: ";").first?
                    .dropFirst(9).description ?? ""
            ),
            "subscriptionId": .string(subscription), "enabled": true, "critical": false,
            "namespaceType": "NotificationHub",
        ])
        return resource(request, name, "namespaces", properties)
    }

    private func hubResource(_ hub: HubDescription, _ request: HTTPRequest, listed: Bool = false) -> JSONValue
    {
        let path = String(request.target.rawPath) + (listed ? "/\(hub.name)" : "")
        return ARMJSON.resource(
            id: path,
            name: hub.name,
            type: "\(Self.provider)/namespaces/notificationHubs",
            hubs.namespace,
            ARMJSON.properties(hub)
        )
    }

    private func rule(_ policy: AccessPolicy, _ request: HTTPRequest, listed: Bool = false) -> JSONValue {
        let path = String(request.target.rawPath) + (listed ? "/\(policy.name)" : "")
        return ARMJSON.resource(
            id: path,
            name: policy.name,
            type: "\(Self.provider)/namespaces/AuthorizationRules",
            hubs.namespace,
            ARMJSON.properties(policy)
        )
    }

    // MARK: The namespace

    private func check(_ namespace: String) throws(HubError) {
        guard hubs.namespace["name"]?.stringValue?.lowercased() == namespace.lowercased() else {
            throw HubError(.notFound, "The namespace '\(namespace)' does not exist.")
        }
    }

    private func namespace(_ name: String, _ request: HTTPRequest) async throws -> HTTPResponse {
        let known = hubs.namespace["name"]?.stringValue
        switch request.method {
        case "PUT":
            guard known == nil || known?.lowercased() == name.lowercased() else {
                throw HubError(.conflict, "This server has one namespace, '\(known ?? "")'.")
            }
            try HubDescriptionRules.checkName(name)
            try await setNamespace(known ?? name, try await body(request))
            return json(known == nil ? 201 : 200, namespaceResource(known ?? name, request))
        case "PATCH":
            try check(name)
            try await setNamespace(known ?? name, try await body(request))
            return json(200, namespaceResource(known ?? name, request))
        case "GET":
            try check(name)
            return json(200, namespaceResource(known ?? name, request))
        case "DELETE":
            guard known?.lowercased() == name.lowercased() else { return HTTPResponse(204) }
            for hub in await hubs.descriptions() {
                // Those of the configuration stay.
                do { try await hubs.delete(hub.name) } catch let error as HubError
                    where error.code == .conflict
                {}
            }
            try await hubs.setNamespace(JSONObject())
            return HTTPResponse(200)
        default:
            throw HubError.methodNotAllowed(
                request.method,
                at: "on a namespace",
                allowed: "GET, PUT, PATCH, DELETE"
            )
        }
    }

    private func setNamespace(_ name: String, _ body: JSONObject) async throws {
        var attributes = hubs.namespace
        attributes["name"] = .string(name)
        if attributes["created"] == nil { attributes["created"] = .string(time.now.description) }
        for member in ["location", "tags", "sku"] {
            if let value = body[member], value != .null { attributes[member] = value }
        }
        try await hubs.setNamespace(attributes)
    }

    // MARK: Hubs

    private static func noHub(_ name: String) -> HubError {
        HubError(.notFound, "The hub '\(name)' does not exist.")
    }

    private func existing(_ name: String) async throws -> HubDescription {
        guard let found = await hubs.description(name) else { throw Self.noHub(name) }
        return found
    }

    private func hub(_ name: String, _ request: HTTPRequest) async throws -> HTTPResponse {
        switch request.method {
        case "PUT":
            let known = await hubs.description(name)
            var description = known ?? HubDescription(name: name)
            try ARMJSON.apply(try await body(request), to: &description)
            let saved = known == nil ? try await hubs.create(description) : try await hubs.update(description)
            return json(known == nil ? 201 : 200, hubResource(saved, request))
        case "PATCH":
            var description = try await existing(name)
            try ARMJSON.apply(try await body(request), to: &description)
            return json(200, hubResource(try await hubs.update(description), request))
        case "GET": return json(200, hubResource(try await existing(name), request))
        case "DELETE":
            try await hubs.delete(name)
            return HTTPResponse(200)
        default:
            throw HubError.methodNotAllowed(
                request.method,
                at: "on a hub",
                allowed: "GET, PUT, PATCH, DELETE"
            )
        }
    }

    /// The body tells its platform by its members; flat strings are values of templates.
    private static func notification(_ bytes: [UInt8]) throws(HubError) -> HubNotification {
        guard let object = (try? JSONValue(parsing: bytes))?.objectValue else {
            throw HubError(.badRequest, "The body must be a JSON object: a notification.")
        }
        let format: HubNotification.Format =
            object["aps"] != nil
            ? .native(.apns)
            : object["message"]?.objectValue != nil
                ? .native(.fcmV1) : object["data"]?.objectValue != nil ? .native(.gcm) : .template
        return HubNotification(format: format, body: bytes)
    }

    // MARK: Rules

    private func policies(_ owner: ARMRoute.Owner) async throws -> [AccessPolicy] {
        switch owner {
        case .namespace(let name):
            try check(name)
            return hubs.namespacePolicies
        case .hub(let name, let namespace):
            try check(namespace)
            return try await existing(name).policies
        }
    }

    private func policy(_ owner: ARMRoute.Owner, _ name: String) async throws -> AccessPolicy {
        guard
            let found = try await policies(owner).first(where: { $0.name.lowercased() == name.lowercased() })
        else {
            throw HubError(.notFound, "There is no authorization rule '\(name)'.")
        }
        return found
    }

    private func rule(
        _ owner: ARMRoute.Owner,
        _ name: String,
        _ request: HTTPRequest
    ) async throws -> HTTPResponse {
        switch request.method {
        case "GET": return json(200, rule(try await policy(owner, name), request))
        case "PUT":
            let properties = try await body(request)["properties"]?.objectValue ?? JSONObject()
            var new = (try? await policy(owner, name)) ?? AccessPolicy(name: name, rights: [])
            new.rights = try ARMJSON.rights(properties)
            return json(200, rule(try await set(new, of: owner), request))
        case "DELETE":
            let all = try await policies(owner)
            let left = all.filter { $0.name.lowercased() != name.lowercased() }
            if left.count == all.count { return HTTPResponse(204) }
            _ = try await replace(left, of: owner)
            return HTTPResponse(200)
        default:
            throw HubError.methodNotAllowed(
                request.method,
                at: "on an authorization rule",
                allowed: "GET, PUT, DELETE"
            )
        }
    }

    private func set(_ policy: AccessPolicy, of owner: ARMRoute.Owner) async throws -> AccessPolicy {
        var all = try await policies(owner)
        all.removeAll { $0.name == policy.name }
        let saved = try await replace(all + [policy], of: owner)
        return saved.first { $0.name == policy.name } ?? policy
    }

    private func replace(_ policies: [AccessPolicy], of owner: ARMRoute.Owner) async throws -> [AccessPolicy]
    {
        guard !policies.isEmpty else {
            throw HubError(
                .conflict,
                "The last authorization rule cannot be deleted: nothing would be reached any more."
            )
        }
        switch owner {
        case .namespace: return try await hubs.setNamespacePolicies(policies)
        case .hub(let name, _):
            var description = try await existing(name)
            description.policies = policies
            return try await hubs.update(description).policies
        }
    }
}

import JSONBytes
import TidingsModels

/// Resources in the form of Azure Resource Manager.
enum ARMJSON {
    /// The members of a hub's properties that hold credentials.
    private static let credentials: [(Platform, String)] = [
        (.apns, "apnsCredential"), (.wns, "wnsCredential"), (.gcm, "gcmCredential"),
        (.mpns, "mpnsCredential"),
        (.adm, "admCredential"), (.baidu, "baiduCredential"), (.fcmV1, "fcmV1Credential"),
        (.browser, "browserCredential"), (.xiaomi, "xiaomiCredential"),
    ]

    static func error(_ error: HubError) -> JSONValue {
        let body = JSONValue.object(["code": .string(error.code.rawValue), "message": .string(error.message)])
        // The one form is azure-core's, the other the model's.
        return .object([
            "error": body, "code": .string(error.code.rawValue), "message": .string(error.message),
        ])
    }

    static func list(_ values: [JSONValue]) -> JSONValue { .object(["value": .array(values)]) }

    static func resource(
        id: String,
        name: String,
        type: String,
        _ attributes: JSONObject,
        _ properties: JSONObject
    ) -> JSONValue {
        var object = JSONObject(["id": .string(id), "name": .string(name), "type": .string(type)])
        object["location"] = attributes["location"] ?? .string("local")
        object["tags"] = attributes["tags"] ?? .object(JSONObject())
        object["sku"] = attributes["sku"] ?? .object(["name": "Standard"])
        object["properties"] = .object(properties)
        return .object(object)
    }

    // MARK: Hubs

    static func properties(_ hub: HubDescription) -> JSONObject {
        JSONObject([
            "name": .string(hub.name), "registrationTtl": .string(DurationText.text(hub.registrationTTL)),
            "authorizationRules": .array(hub.policies.map { .object(properties($0)) }),
        ])
    }

    static func credentials(_ hub: HubDescription) -> JSONObject {
        var object = JSONObject()
        for (platform, name) in credentials {
            guard let values = hub.credentials[platform] else { continue }
            var properties = JSONObject()
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                properties[key.prefix(1).lowercased() + key.dropFirst()] = .string(value)
            }
            object[name] = .object(["properties": .object(properties)])
        }
        return object
    }

    /// Changes a description by what a body states; what it does not state stays.
    static func apply(_ body: JSONObject, to hub: inout HubDescription) throws(HubError) {
        guard let properties = body["properties"]?.objectValue else { return }
        if let text = properties["registrationTtl"]?.stringValue {
            guard let duration = DurationText.parse(text) else {
                throw HubError(.badRequest, "registrationTtl '\(text)' is not a duration such as P90D.")
            }
            hub.registrationTTL = duration
        }
        for (platform, name) in credentials {
            guard let credential = properties[name]?["properties"]?.objectValue else { continue }
            var values: [String: String] = [:]
            for member in credential.members {
                guard let text = member.value.stringValue else {
                    throw HubError(.badRequest, "'\(name)/\(member.name)' must be a string.")
                }
                values[member.name.prefix(1).uppercased() + member.name.dropFirst()] = text
            }
            hub.credentials[platform] = values
        }
        if let rules = properties["authorizationRules"]?.arrayValue {
            for rule in rules {
                guard let object = rule.objectValue, let name = object["keyName"]?.stringValue else {
                    continue
                }
                var policy = hub.policies.first { $0.name == name } ?? AccessPolicy(name: name, rights: [])
                policy.rights = try rights(object)
                policy.primaryKey = object["primaryKey"]?.stringValue ?? policy.primaryKey
                policy.secondaryKey = object["secondaryKey"]?.stringValue ?? policy.secondaryKey
                hub.policies.removeAll { $0.name == name }
                hub.policies.append(policy)
            }
        }
    }

    // MARK: Rules

    static func properties(_ policy: AccessPolicy) -> JSONObject {
        JSONObject([
            "rights": .array(policy.rights.names.map { .string($0) }),
            "primaryKey": .string(policy.primaryKey),
            "secondaryKey": .string(policy.secondaryKey), "keyName": .string(policy.name),
            "claimType": "SharedAccessKey",
            "claimValue": "None", "createdTime": .string(policy.created.description),
            "modifiedTime": .string(policy.modified.description), "revision": 0,
        ])
    }

    static func rights(_ properties: JSONObject) throws(HubError) -> AccessRights {
        var rights: AccessRights = []
        for item in properties["rights"]?.arrayValue ?? [] {
            guard let right = item.stringValue.flatMap({ AccessRights(name: $0) }) else {
                throw HubError(.badRequest, "'rights' holds Listen, Manage and Send.")
            }
            rights.insert(right)
        }
        guard !rights.isEmpty else {
            throw HubError(.badRequest, "'rights' is missing or empty; it holds Listen, Manage and Send.")
        }
        return rights
    }

    /// - Parameter string: A connection string for a key.
    static func keys(_ policy: AccessPolicy, string: (String) -> String) -> JSONValue {
        .object([
            "primaryConnectionString": .string(string(policy.primaryKey)),
            "secondaryConnectionString": .string(string(policy.secondaryKey)),
            "primaryKey": .string(policy.primaryKey),
            "secondaryKey": .string(policy.secondaryKey), "keyName": .string(policy.name),
        ])
    }

    static func debugSend(_ outcome: NotificationOutcome) -> JSONObject {
        let results = outcome.results.map {
            JSONValue.object([
                "ApplicationPlatform": .string($0.applicationPlatform.format),
                "PnsHandle": .string($0.pnsHandle),
                "RegistrationId": .string($0.registrationID.text), "Outcome": .string($0.outcome),
            ])
        }
        return JSONObject([
            "success": .number(outcome.success), "failure": .number(outcome.failure),
            "results": .array(results),
        ])
    }
}

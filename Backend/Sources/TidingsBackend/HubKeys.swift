import HTTPMessages
import HubCore
import JSONBytes
import ProcessLifecycle
import PushCredentials

/// The access policies of the hubs, kept in `keys/hubs.json`. Keys are made once: 32 random bytes as Base64, since some
/// SDKs demand 44 characters.
struct HubKeys {
    private let path: String
    private var policies: [String: [AccessPolicy]] = [:]

    init(path: String) throws {
        self.path = path
        guard let bytes = try Files.read(path) else { return }
        guard case .object(let object) = try JSONValue(parsing: bytes) else {
            throw ConfigurationError("\(path) is damaged")
        }
        for member in object.members {
            policies[member.name] = (member.value.arrayValue ?? []).compactMap { value in
                guard let name = value["name"]?.stringValue, let primary = value["primaryKey"]?.stringValue,
                    let secondary = value["secondaryKey"]?.stringValue,
                    let rights = value["rights"]?.integerValue
                else { return nil }
                return AccessPolicy(
                    name: name,
                    primaryKey: primary,
                    secondaryKey: secondary,
                    rights: AccessRights(rawValue: rights)
                )
            }
        }
    }

    /// The hubs that have keys.
    var hubs: [String] { policies.keys.sorted() }

    /// The policies of a hub; the two default ones are made when it has none.
    mutating func policies(for hub: String) throws -> [AccessPolicy] {
        if let known = policies[hub], !known.isEmpty { return known }
        let made = [
            AccessPolicy(
                name: AccessPolicy.listenName,
                primaryKey: Self.newKey(),
                secondaryKey: Self.newKey(),
                rights: .listen
            ),
            AccessPolicy(
                name: AccessPolicy.fullName,
                primaryKey: Self.newKey(),
                secondaryKey: Self.newKey(),
                rights: [.listen, .manage, .send]
            ),
        ]
        policies[hub] = made
        try save()
        return made
    }

    private static func newKey() -> String { Base64.encode(Digests.random(32)) }

    private func save() throws {
        var object = JSONObject()
        for (hub, policies) in policies.sorted(by: { $0.key < $1.key }) {
            object[hub] = .array(
                policies.map {
                    .object([
                        "name": .string($0.name), "primaryKey": .string($0.primaryKey),
                        "secondaryKey": .string($0.secondaryKey),
                        "rights": .number($0.rights.rawValue),
                    ])
                }
            )
        }
        try Files.replace(path, with: JSONValue.object(object).serialized())
    }
}

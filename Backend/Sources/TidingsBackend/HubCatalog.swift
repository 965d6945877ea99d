import HTTPMessages
import HubCore
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// The hubs of a state folder, in `keys/hubs.json`: policies, settings, and the platforms' credentials sealed with
/// `keys/credentials.key`. Written whole, and on disk when a change returns.
struct HubCatalog {
    struct Entry: Equatable {
        var description: HubDescription
        /// The configuration names it: it is open only as long as it does.
        var isConfigured: Bool
    }

    private let path: String
    private let key: [UInt8]
    private(set) var namespacePolicies: [AccessPolicy] = []
    /// What an operator stated about the namespace.
    private(set) var namespace = JSONObject()
    /// By lower-case name.
    private(set) var entries: [String: Entry] = [:]

    init(keys folder: String) throws {
        path = folder + "/hubs.json"
        key = try Self.key(folder + "/credentials.key")
        guard let bytes = try Files.read(path) else { return }
        guard let object = (try JSONValue(parsing: bytes)).objectValue else {
            throw ConfigurationError("\(path) is damaged")
        }
        if let hubs = object["hubs"]?.objectValue {
            namespacePolicies = Self.policies(object["namespace"])
            namespace = object["namespaceAttributes"]?.objectValue ?? JSONObject()
            for member in hubs.members { try read(member.name, member.value) }
        } else {
            // As earlier versions wrote it: the policies of each hub that the configuration names.
            for member in object.members {
                let description = HubDescription(name: member.name, policies: Self.policies(member.value))
                entries[member.name.lowercased()] = Entry(description: description, isConfigured: true)
            }
        }
    }

    private static func key(_ path: String) throws -> [UInt8] {
        if let bytes = try Files.read(path) {
            guard bytes.count == SecretBox.keyByteCount else {
                throw ConfigurationError("\(path) is damaged")
            }
            return bytes
        }
        let made = Digests.random(SecretBox.keyByteCount)
        try Files.replace(path, with: made)
        return made
    }

    /// Keys are 32 random bytes as Base64, since some SDKs demand 44 characters.
    static func newKey() -> String { Base64.encode(Digests.random(32)) }

    static func newPolicy(_ name: String, _ rights: AccessRights, now: Timestamp) -> AccessPolicy {
        AccessPolicy(
            name: name,
            primaryKey: newKey(),
            secondaryKey: newKey(),
            rights: rights,
            created: now,
            modified: now
        )
    }

    /// The two that a hub has when none are named.
    static func defaultPolicies(now: Timestamp) -> [AccessPolicy] {
        [
            newPolicy(AccessPolicy.listenName, .listen, now: now),
            newPolicy(AccessPolicy.fullName, .full, now: now),
        ]
    }

    // MARK: Changes

    subscript(name: String) -> Entry? { entries[name.lowercased()] }

    /// Makes the namespace's policy when there is none.
    mutating func addRootPolicy(now: Timestamp) throws {
        guard namespacePolicies.isEmpty else { return }
        namespacePolicies = [Self.newPolicy(AccessPolicy.rootName, .full, now: now)]
        try save()
    }

    mutating func setNamespace(_ policies: [AccessPolicy], _ attributes: JSONObject) throws {
        let before = (namespacePolicies, namespace)
        (namespacePolicies, namespace) = (policies, attributes)
        do { try save() } catch {
            (namespacePolicies, namespace) = before
            throw error
        }
    }

    mutating func set(_ entry: Entry) throws {
        let before = entries
        entries[entry.description.name.lowercased()] = entry
        do { try save() } catch {
            entries = before
            throw error
        }
    }

    mutating func remove(_ name: String) throws {
        let before = entries
        entries[name.lowercased()] = nil
        do { try save() } catch {
            entries = before
            throw error
        }
    }

    // MARK: The file

    private func save() throws {
        var hubs = JSONObject()
        for entry in entries.values.sorted(by: { $0.description.name < $1.description.name }) {
            hubs[entry.description.name] = try value(entry)
        }
        var object = JSONObject(["namespace": Self.value(namespacePolicies), "hubs": .object(hubs)])
        if !namespace.isEmpty { object["namespaceAttributes"] = .object(namespace) }
        try Files.replace(path, with: JSONValue.object(object).serialized())
    }

    private func value(_ entry: Entry) throws -> JSONValue {
        let hub = entry.description
        var object = JSONObject([
            "policies": Self.value(hub.policies), "created": .number(hub.created.milliseconds),
            "updated": .number(hub.updated.milliseconds), "disabled": .bool(hub.isDisabled),
            "configured": .bool(entry.isConfigured),
        ])
        object["registrationTTL"] = hub.registrationTTL.map { .string(DurationText.text($0)) }
        object["userMetadata"] = hub.userMetadata.map { .string($0) }
        if !hub.credentials.isEmpty {
            var credentials = JSONObject()
            for (platform, properties) in hub.credentials {
                var values = JSONObject()
                for (name, value) in properties { values[name] = .string(value) }
                credentials[platform.rawValue] = .object(values)
            }
            let box = try SecretBox.seal(
                JSONValue.object(credentials).serialized(),
                key: key,
                context: Self.context(hub.name)
            )
            object["credentials"] = .string(Base64.encode(box))
        }
        return .object(object)
    }

    private static func context(_ hub: String) -> String { "credentials of " + hub.lowercased() }

    private mutating func read(_ name: String, _ value: JSONValue) throws {
        func time(_ name: String) -> Timestamp {
            Timestamp(milliseconds: Int64(value[name]?.integerValue ?? 0))
        }
        var hub = HubDescription(name: name, policies: Self.policies(value["policies"]))
        (hub.created, hub.updated) = (time("created"), time("updated"))
        hub.isDisabled = value["disabled"]?.boolValue ?? false
        hub.registrationTTL = value["registrationTTL"]?.stringValue.flatMap { DurationText.parse($0) } ?? nil
        hub.userMetadata = value["userMetadata"]?.stringValue
        if let text = value["credentials"]?.stringValue {
            guard let box = Base64.decode(text),
                let bytes = SecretBox.open(box, key: key, context: Self.context(name)),
                let object = (try JSONValue(parsing: bytes)).objectValue
            else {
                throw ConfigurationError(
                    "\(path): the credentials of the hub '\(name)' do not open with credentials.key of the same folder"
                )
            }
            for member in object.members {
                guard let platform = Platform(rawValue: member.name), let values = member.value.objectValue
                else { continue }
                hub.credentials[platform] = Dictionary(
                    values.members.map { ($0.name, $0.value.stringValue ?? "") }
                ) { first, _ in first }
            }
        }
        let isConfigured = value["configured"]?.boolValue ?? true
        entries[name.lowercased()] = Entry(description: hub, isConfigured: isConfigured)
    }

    private static func policies(_ value: JSONValue?) -> [AccessPolicy] {
        (value?.arrayValue ?? []).compactMap { value in
            guard let name = value["name"]?.stringValue, let primary = value["primaryKey"]?.stringValue,
                let secondary = value["secondaryKey"]?.stringValue, let rights = value["rights"]?.integerValue
            else { return nil }
            func time(_ name: String) -> Timestamp {
                Timestamp(milliseconds: Int64(value[name]?.integerValue ?? 0))
            }
            return AccessPolicy(
                name: name,
                primaryKey: primary,
                secondaryKey: secondary,
                rights: AccessRights(rawValue: rights),
                created: time("created"),
                modified: time("modified")
            )
        }
    }

    private static func value(_ policies: [AccessPolicy]) -> JSONValue {
        .array(
            policies.map {
                .object([
                    "name": .string($0.name), "primaryKey": .string($0.primaryKey),
                    "secondaryKey": .string($0.secondaryKey), "rights": .number($0.rights.rawValue),
                    "created": .number($0.created.milliseconds),
                    "modified": .number($0.modified.milliseconds),
                ])
            }
        )
    }
}

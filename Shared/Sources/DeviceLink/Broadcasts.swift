import JSONBytes

/// The name of something that many devices follow at once: `remote-settings/monitor_changes`. It has a version, an opaque
/// text, and a device is told when its own differs (push services reference, section 6.6).
package struct BroadcastID: Hashable, Sendable {
    package static let byteCountMax = 128
    package static let versionByteCountMax = 128
    /// Ids in one frame, and ids that one connection follows.
    package static let countMaxPerDevice = 100
    /// The member that holds the unknown ids beside the versions.
    fileprivate static let errors = "errors"

    package let text: String

    /// Nil for what no broadcast is called: more than ``byteCountMax`` visible ASCII characters, none, or `errors`.
    package init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= Self.byteCountMax, text != Self.errors,
            text.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        self.text = text
    }

    /// ASCII text compares by its bytes.
    package static func isVersion(_ text: String) -> Bool {
        text.utf8.count <= versionByteCountMax && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }
}

/// What a gateway tells a device of the broadcasts that it follows.
package struct BroadcastNews: Equatable, Sendable {
    /// Those that differ from the device's.
    package var versions: [BroadcastID: String] = [:]
    /// Ids that the gateway does not have.
    package var unknown: Set<BroadcastID> = []

    package var isEmpty: Bool { versions.isEmpty && unknown.isEmpty }

    package init(versions: [BroadcastID: String] = [:], unknown: Set<BroadcastID> = []) {
        self.versions = versions
        self.unknown = unknown
    }

    /// Reads the member `broadcasts`; none is no news.
    init(_ json: JSONValue?) throws(LinkViolation) {
        guard var object = json?.objectValue else { return }
        for member in object[BroadcastID.errors]?.objectValue?.members ?? [] {
            unknown.insert(try LinkJSON.broadcastID(member.name))
        }
        object[BroadcastID.errors] = nil
        versions = try LinkJSON.broadcasts(.object(object))
    }

    var json: JSONValue {
        var object = LinkJSON.members(versions)
        if !unknown.isEmpty {
            // autopush-rs answers so, beside the versions.
            let reasons = Dictionary(uniqueKeysWithValues: unknown.map { ($0, "Broadcast not found") })
            object[BroadcastID.errors] = .object(LinkJSON.members(reasons))
        }
        return .object(object)
    }
}

extension LinkJSON {
    static func broadcastID(_ text: String) throws(LinkViolation) -> BroadcastID {
        guard let id = BroadcastID(text) else {
            throw LinkViolation.json(
                "the id of a broadcast must be 1 to \(BroadcastID.byteCountMax) visible ASCII characters"
            )
        }
        return id
    }

    /// Versions by id.
    static func broadcasts(_ json: JSONValue?) throws(LinkViolation) -> [BroadcastID: String] {
        guard let object = json?.objectValue else {
            throw LinkViolation.json("'broadcasts' must be an object")
        }
        guard object.members.count <= BroadcastID.countMaxPerDevice else {
            throw LinkViolation.json("'broadcasts' has more than \(BroadcastID.countMaxPerDevice) members")
        }
        var versions: [BroadcastID: String] = [:]
        for member in object.members {
            guard let version = member.value.stringValue, BroadcastID.isVersion(version) else {
                throw LinkViolation.json(
                    "the version of a broadcast must be a string of up to \(BroadcastID.versionByteCountMax) ASCII characters"
                )
            }
            versions[try broadcastID(member.name)] = version
        }
        return versions
    }

    static func members(_ versions: [BroadcastID: String]) -> JSONObject {
        var object = JSONObject()
        for (id, version) in versions.sorted(by: { $0.key.text < $1.key.text }) {
            object[id.text] = .string(version)
        }
        return object
    }
}

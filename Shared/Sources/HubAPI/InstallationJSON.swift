package import JSONBytes
package import TidingsModels

/// The JSON form of installations (protocol reference, section 4.2). Unknown members are ignored: SDKs send some.
package enum InstallationJSON {
    /// The largest body.
    package static let byteCountMax = 128 << 10

    // MARK: Writing

    /// The members in the order of the original; null ones are left out.
    package static func value(_ installation: Installation) -> JSONValue {
        var object = JSONObject()
        object["installationId"] = .string(installation.id)
        object["pushChannel"] = channel(installation.handle, isText: installation.isChannelText)
        object["pushChannelExpired"] = .bool(installation.isChannelExpired)
        object["platform"] = .string(installation.handle.platform.rawValue)
        object["expirationTime"] = .string(expiry(installation.expires))
        object["userId"] = installation.userID.map { .string($0) }
        object["tags"] = tags(installation.tags)
        if !installation.pushVariables.isEmpty {
            object["pushVariables"] = strings(
                installation.pushVariables.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            )
        }
        object["templates"] = templates(installation.templates)
        if !installation.secondaryTiles.isEmpty {
            var tiles = JSONObject()
            for tile in installation.secondaryTiles {
                var value = JSONObject()
                value["pushChannel"] = .string(tile.handle.text)
                value["pushChannelExpired"] = .bool(tile.isChannelExpired)
                value["tags"] = tags(tile.tags)
                value["templates"] = templates(tile.templates)
                tiles[tile.name] = .object(value)
            }
            object["secondaryTiles"] = .object(tiles)
        }
        return .object(object)
    }

    /// "Never" has seven digits at the original.
    private static func expiry(_ time: Timestamp) -> String {
        time == .never ? "9999-12-31T23:59:59.9999999Z" : time.description
    }

    private static func channel(_ handle: PlatformHandle, isText: Bool) -> JSONValue {
        guard let value = SubscriptionJSON.value(handle) else { return .string(handle.text) }
        return isText ? .string(value.text) : value
    }

    private static func tags(_ tags: [HubTag]) -> JSONValue? {
        tags.isEmpty ? nil : .array(tags.map { .string($0.text) })
    }

    private static func strings(_ pairs: [(String, String)]) -> JSONValue {
        var object = JSONObject()
        for (name, value) in pairs { object[name] = .string(value) }
        return .object(object)
    }

    /// The original lists a template's own name among its tags.
    private static func templates(_ templates: [InstallationTemplate]) -> JSONValue? {
        guard !templates.isEmpty else { return nil }
        var object = JSONObject()
        for template in templates {
            var value = JSONObject()
            value["body"] = .string(template.body)
            if !template.headers.isEmpty {
                value["headers"] = strings(template.headers.map { ($0.name, $0.value) })
            }
            value["expiry"] = template.expiry.map { .string($0) }
            value["tags"] = .array((template.tags.map(\.text) + [template.name]).map { .string($0) })
            object[template.name] = .object(value)
        }
        return .object(object)
    }

    // MARK: Reading

    /// Reads a body.
    /// - Parameter id: The id of the address; a different one in the body is refused.
    package static func read(_ bytes: [UInt8], id: String) throws(HubError) -> Installation {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The installation is not JSON: \(error).")
        }
        return try read(value, id: id)
    }

    package static func read(_ value: JSONValue, id: String) throws(HubError) -> Installation {
        guard case .object(let object) = value else {
            throw HubError(.badRequest, "An installation must be a JSON object.")
        }
        try checkID(id)
        let members = Members(object, "")
        if let stated = try members.string("installationId"), stated != id {
            throw HubError(
                .badRequest,
                "installationId '\(stated)' in the body differs from '\(id)' in the address."
            )
        }
        guard let platformName = try members.string("platform") else {
            throw HubError(
                .badRequest,
                "The installation's 'platform' is missing. Allowed are \(platformNames)."
            )
        }
        guard let platform = Platform(installationName: platformName) else {
            throw HubError(
                .badRequest,
                "The platform '\(platformName)' is not known. Allowed are \(platformNames)."
            )
        }
        let userID = try members.string("userId").flatMap { $0.isEmpty ? nil : $0 }
        if let userID, HubTag.user(userID) == nil {
            throw HubError(
                .badRequest,
                "The userId '\(userID)' is not allowed: valid characters are ASCII letters and digits and '_', '@', '#', '.', ':', '-', '='."
            )
        }
        let (handle, isText) = try channel(members, platform)
        var installation = Installation(id: id, handle: handle, userID: userID, isChannelText: isText)
        installation.isChannelExpired = try members.bool("pushChannelExpired") ?? false
        if let text = try members.string("expirationTime"), !text.isEmpty {
            guard let time = Timestamp(parsing: text) else {
                throw HubError(
                    .badRequest,
                    "expirationTime '\(text)' is not a date such as 2030-01-02T10:20:30Z."
                )
            }
            installation.expires = min(time, .never)
        }
        let own = [HubTag.installation(id), userID.flatMap { HubTag.user($0) }].compactMap(\.self)
        installation.tags = try members.tags("tags", dropping: own)
        installation.pushVariables = Dictionary(
            try members.strings("pushVariables").map { ($0.name, $0.value) }
        ) { _, last in last }
        installation.templates = try members.templates("templates")
        for (name, value) in try members.objects("secondaryTiles") {
            guard platform == .wns || platform == .mpns else {
                throw HubError(
                    .badRequest,
                    "secondaryTiles are for wns; the platform is \(platform.rawValue)."
                )
            }
            let tile = Members(value, "secondaryTiles/\(name)/")
            let (handle, _) = try channel(tile, platform)
            installation.secondaryTiles.append(
                SecondaryTile(
                    name: name,
                    handle: handle,
                    isChannelExpired: try tile.bool("pushChannelExpired") ?? false,
                    tags: try tile.tags("tags"),
                    templates: try tile.templates("templates")
                )
            )
        }
        return installation
    }

    /// A browser's subscription, unchecked; nil when the text is no JSON object with an endpoint.
    package static func subscription(_ text: String) -> PlatformHandle? {
        guard let object = (try? JSONValue(parsing: Array(text.utf8)))?.objectValue,
            let endpoint = object.member(ignoringCase: "endpoint")?.stringValue
        else { return nil }
        let keys = SubscriptionKeys(
            p256dh: object.member(ignoringCase: "p256dh")?.stringValue ?? "",
            auth: object.member(ignoringCase: "auth")?.stringValue ?? ""
        )
        return PlatformHandle(unchecked: endpoint, platform: .browser, keys: keys)
    }

    package static func checkID(_ id: String) throws(HubError) {
        guard !id.isEmpty, id.utf8.count <= Installation.idByteCountMax,
            id.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F })
        else {
            throw HubError(
                .badRequest,
                "An installation id has 1 to \(Installation.idByteCountMax) bytes and no control character; this one has \(id.utf8.count) bytes."
            )
        }
    }

    private static var platformNames: String { Platform.allCases.map(\.rawValue).joined(separator: ", ") }

    /// A string; for browsers an object, or text that holds one.
    private static func channel(
        _ members: Members,
        _ platform: Platform
    ) throws(HubError) -> (PlatformHandle, isText: Bool) {
        guard let value = members["pushChannel"] else {
            throw HubError(.badRequest, "'\(members.path)pushChannel' is missing.")
        }
        guard platform == .browser else {
            guard let text = value.stringValue else {
                throw HubError(.badRequest, "'\(members.path)pushChannel' must be a string.")
            }
            return (try PlatformHandle(text, platform: platform), false)
        }
        let path = members.path + "pushChannel"
        if let text = value.stringValue { return (try SubscriptionJSON.read(text, path: path), true) }
        guard let object = value.objectValue else { throw SubscriptionJSON.refusal(path) }
        return (try SubscriptionJSON.read(object, path: path), false)
    }
}

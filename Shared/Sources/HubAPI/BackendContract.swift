package import HTTPMessages
package import JSONBytes
package import TidingsModels

/// Every address of the app back end (protocol reference, section 12).
package enum BackendRoute: Equatable, Sendable {
    case root
    case register
    case registration(id: String)
    case notifications
    /// The id as text: one that is no 31-bit integer is unknown, hence 404.
    case notification(id: String)

    package var path: String {
        switch self {
        case .root: "/"
        case .register: "/api/register"
        case .registration(let id): "/api/register/" + PercentEncoding.encode(id)
        case .notifications: "/api/notifications"
        case .notification(let id): "/api/notifications/" + PercentEncoding.encode(id)
        }
    }

    /// What `Allow` lists.
    package var methods: String {
        switch self {
        case .root, .notification: "GET, HEAD"
        case .register, .notifications: "POST"
        case .registration: "PUT, DELETE"
        }
    }

    /// Words match without case, as ASP.NET routes do.
    package init?(_ target: RequestTarget) {
        let segments = target.segments
        let words = segments.map { $0.lowercased() }
        switch (words.count, words.first, words.count > 1 ? words[1] : "") {
        case (0, _, _): self = .root
        case (2, "api", "register"): self = .register
        case (3, "api", "register"): self = .registration(id: segments[2])
        case (2, "api", "notifications"): self = .notifications
        case (3, "api", "notifications"): self = .notification(id: segments[2])
        default: return nil
        }
    }
}

/// The JSON bodies of the app back end.
package enum BackendJSON {
    /// `{"Platform":…,"Handle":…,"Tags":[…]}`; names compare without case, missing tags are none.
    package static func deviceRegistration(_ bytes: [UInt8]) throws(HubError) -> DeviceRegistration {
        let object = try object(bytes)
        return DeviceRegistration(
            platform: try string(object, "Platform"),
            handle: try string(object, "Handle"),
            tags: try strings(object, "Tags")
        )
    }

    package static func json(_ registration: DeviceRegistration) -> JSONValue {
        [
            ("Platform", .string(registration.platform)), ("Handle", .string(registration.handle)),
            ("Tags", .array(registration.tags.map { .string($0) })),
        ].json
    }

    /// A device's own form: `{"platform":"ios","instId":…,"deviceToken":…}`.
    package struct InstallationRegistration: Equatable, Sendable {
        package var platform: String
        package var installationID: String
        package var deviceToken: String

        package init(platform: String, installationID: String, deviceToken: String) {
            self.platform = platform
            self.installationID = installationID
            self.deviceToken = deviceToken
        }
    }

    package static func installationRegistration(
        _ bytes: [UInt8]
    ) throws(HubError) -> InstallationRegistration {
        let object = try object(bytes)
        return InstallationRegistration(
            platform: try string(object, "platform"),
            installationID: try string(object, "instId"),
            deviceToken: try string(object, "deviceToken")
        )
    }

    package static func json(_ registration: InstallationRegistration) -> JSONValue {
        [
            ("platform", .string(registration.platform)), ("instId", .string(registration.installationID)),
            ("deviceToken", .string(registration.deviceToken)),
        ].json
    }

    /// The tutorials' item, in their capitalisation.
    package static func json(_ notification: Notification) -> JSONValue {
        var members: [(String, JSONValue)] = [("Id", .number(Int(notification.id)))]
        if !notification.richType.isEmpty {
            members += [
                ("Message", .string(notification.message)), ("RichType", .string(notification.richType)),
            ]
        }
        members += [("Payload", .string(notification.payload)), ("Read", .bool(notification.read))]
        return members.json
    }

    package static func notification(_ bytes: [UInt8]) throws(HubError) -> Notification {
        let object = try object(bytes)
        guard let id = object.member(ignoringCase: "Id")?.integerValue.flatMap({ Int32(exactly: $0) }) else {
            throw HubError(.badRequest, "The member 'Id' must be a 32-bit integer.")
        }
        func text(_ name: String) -> String { object.member(ignoringCase: name)?.stringValue ?? "" }
        return Notification(
            id: id,
            message: text("Message"),
            richType: text("RichType"),
            payload: text("Payload"),
            read: object.member(ignoringCase: "Read")?.boolValue ?? false
        )
    }

    package static func object(_ bytes: [UInt8]) throws(HubError) -> JSONObject {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not JSON: \(error).")
        }
        guard case .object(let object) = value else {
            throw HubError(.badRequest, "The body must be a JSON object.")
        }
        return object
    }

    private static func string(_ object: JSONObject, _ name: String) throws(HubError) -> String {
        guard let text = object.member(ignoringCase: name)?.stringValue, !text.isEmpty else {
            throw HubError(.badRequest, "The member '\(name)' must be a string that is not empty.")
        }
        return text
    }

    private static func strings(_ object: JSONObject, _ name: String) throws(HubError) -> [String] {
        switch object.member(ignoringCase: name) {
        case nil, .null?: return []
        case .array(let values)?:
            var texts: [String] = []
            for value in values {
                guard let text = value.stringValue else {
                    throw HubError(.badRequest, "The member '\(name)' must be an array of strings.")
                }
                texts.append(text)
            }
            return texts
        default: throw HubError(.badRequest, "The member '\(name)' must be an array of strings.")
        }
    }
}

extension [(String, JSONValue)] {
    /// An object with these members.
    var json: JSONValue {
        var object = JSONObject()
        for (name, value) in self { object[name] = value }
        return .object(object)
    }
}

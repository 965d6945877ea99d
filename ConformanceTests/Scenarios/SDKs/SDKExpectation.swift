import HTTPMessages
import TidingsConformance
import TidingsModels

/// Something that an SDK reads in an answer, or that must be true afterwards.
struct SDKExpectation: Sendable {
    /// What is expected, for the message of a failure.
    let name: String
    let holds: @Sendable (SDKOutcome) async throws -> Bool

    init(_ name: String, _ holds: @escaping @Sendable (SDKOutcome) async throws -> Bool) {
        self.name = name
        self.holds = holds
    }

    // MARK: Status and header

    static func status(_ code: Int) -> SDKExpectation {
        SDKExpectation("status \(code)") { $0.answer.status == code }
    }

    static func field(_ name: String, _ value: String) -> SDKExpectation {
        SDKExpectation("\(name): \(value)") { $0.answer.fields[name] == $0.filled(value) }
    }

    static func has(_ name: String) -> SDKExpectation {
        SDKExpectation("a field \(name)") { $0.answer.fields[name] != nil }
    }

    static func lacks(_ name: String) -> SDKExpectation {
        SDKExpectation("no field \(name)") { $0.answer.fields[name] == nil }
    }

    /// `Location` is `https`, with exactly the path and one segment more, which is the id: SDKs count segments.
    static func location(_ path: String) -> SDKExpectation {
        SDKExpectation("a Location below \(path)") { outcome in
            guard let url = outcome.answer.fields["Location"].flatMap({ HTTPURL($0) }) else { return false }
            let segments = url.target.prefix { $0 != "?" }.split(separator: "/")
            return url.scheme == "https" && segments.dropLast() == path.split(separator: "/")[...]
                && segments.last.map(String.init) == outcome.answer.id
        }
    }

    // MARK: Body

    static let empty = SDKExpectation("no body") { $0.answer.body.isEmpty }

    static func isBody(_ text: String) -> SDKExpectation {
        SDKExpectation("the body \(text)") { $0.answer.body == $0.filled(text) }
    }

    /// The body holds the parts, one behind the other. A quotation mark may be an entity, which every parser reads.
    static func body(_ parts: String...) -> SDKExpectation {
        SDKExpectation("a body with \(parts)") { outcome in
            var rest = outcome.answer.plainBody[...]
            for part in parts {
                guard let found = rest.firstRange(of: outcome.filled(part)) else { return false }
                rest = rest[found.upperBound...]
            }
            return true
        }
    }

    static func omits(_ part: String) -> SDKExpectation {
        SDKExpectation("a body without \(part)") { !$0.answer.body.contains(part) }
    }

    /// The error that .NET and JavaScript show.
    static func error(_ code: Int) -> SDKExpectation {
        SDKExpectation("the error \(code)") {
            $0.answer.status == code && $0.answer.body.hasPrefix("<Error><Code>\(code)</Code><Detail>")
        }
    }

    /// One registration. No reader forgives white space before the description, an element out of order, or one that the
    /// type does not have: hence every byte from the start of the content.
    static func entry(_ root: String, etag: Int = 1, _ members: String) -> SDKExpectation {
        SDKExpectation("a \(root) with ETag \(etag) and \(members)") { outcome in
            let (fields, body) = (outcome.answer.fields, outcome.answer.plainBody)
            let start =
                "<content type=\"application/xml\"><\(root) xmlns=\"\(SDKBody.connect)\" xmlns:i=\"\(SDKBody.instance)\"><ETag>\(etag)</ETag>"
                + "<ExpirationTime>9999-12-31T23:59:59.999Z</ExpirationTime><RegistrationId>"
            guard outcome.answer.body.hasPrefix("<entry a:etag=\"W/&quot;\(etag)&quot;\" xmlns="),
                let content = body.firstRange(of: start)
            else { return false }
            let id = body[content.upperBound...].prefix { $0 != "<" }
            return outcome.answer.status == 200 && fields["ETag"] == "W/\"\(etag)\""
                && fields["Content-Type"] == "application/atom+xml; type=entry; charset=utf-8"
                && !body.contains("\n") && !id.isEmpty && id == outcome.values["id"] ?? String(id)
                && body[content.upperBound...].dropFirst(id.count)
                    == "</RegistrationId>\(outcome.filled(members))</\(root)></content></entry>"
        }
    }

    /// A list of registrations of one type.
    static func feed(_ root: String, count: Int) -> SDKExpectation {
        SDKExpectation("a feed of \(count) \(root)") { outcome in
            let body = outcome.answer.body
            return outcome.answer.status == 200 && body.hasPrefix("<feed xmlns=\"\(SDKBody.atom)\"><title")
                && outcome.answer.fields["Content-Type"]
                    == "application/atom+xml; type=feed; charset=utf-8"
                && body.split(separator: "<content type=\"application/xml\"><\(root) xmlns=").count == count
                    + 1
                && body.split(separator: "<entry a:etag=").count == count + 1
        }
    }

    // MARK: Afterwards

    /// There is no registration `{id}`.
    static let gone = SDKExpectation("no registration afterwards") {
        try await $0.world.hub().registration(RegistrationID(unchecked: $0.filled("{id}"))) == nil
    }

    /// There is no installation i-1.
    static let goneInstallation = SDKExpectation("no installation afterwards") {
        try await $0.world.hub().installation("i-1") == nil
    }

    /// The send was taken for these platforms.
    static func target(_ platforms: String) -> SDKExpectation {
        SDKExpectation("a send to \(platforms)") { outcome in
            guard let id = NotificationID(outcome.answer.id) else { return false }
            let format = try await outcome.world.hub().details(id).notification.format
            return format == HubNotification.Format(platforms)
        }
    }

    /// The installation is in the hub with this channel.
    static func stored(_ id: String, _ platform: Platform, _ handle: String) -> SDKExpectation {
        SDKExpectation("the \(platform.rawValue) installation \(id) of \(handle)") {
            let found = try await $0.world.hub().installation(id)
            return found?.handle.platform == platform && found?.handle.text == handle
        }
    }
}

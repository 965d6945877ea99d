import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import JSONBytes
import TidingsModels

/// Reads a send (protocol reference, sections 5.1 to 5.3).
enum NotificationRequest {
    /// Whom a send addresses.
    enum Recipients {
        /// A tag expression; empty for everyone.
        case tags(String)
        /// Handles that need no registration.
        case handles([PlatformHandle])
    }

    static func read(_ request: HTTPRequest, body: [UInt8]) throws(HubError) -> (HubNotification, Recipients)
    {
        let fields = request.fields
        guard !body.isEmpty else { throw HubError(.badRequest, "The notification has no body.") }
        let notification = HubNotification(
            format: try format(fields),
            body: body,
            headers: try platformHeaders(fields)
        )
        guard request.target.parameter("direct") != nil else {
            return (notification, .tags(fields[HubHeader.tags] ?? ""))
        }
        guard case .native(let platform) = notification.format else {
            throw HubError(
                .badRequest,
                "A direct send has the format of one platform; template sends go to tags."
            )
        }
        guard let handle = fields[HubHeader.deviceHandle], !handle.isEmpty else {
            throw HubError(
                .badRequest,
                "\(HubHeader.deviceHandle) is missing: a direct send names one handle there."
            )
        }
        let keys = fields["P256DH"].map { SubscriptionKeys(p256dh: $0, auth: fields["Auth"] ?? "") }
        return (notification, .handles([directHandle(handle, platform, keys)]))
    }

    /// The form of a handle is checked at the dispatch: as at the original, a bad one shows in the outcomes.
    private static func directHandle(
        _ text: String,
        _ platform: Platform,
        _ keys: SubscriptionKeys?
    ) -> PlatformHandle {
        if platform == .browser, text.utf8.first == UInt8(ascii: "{"),
            let subscription = InstallationJSON.subscription(text)
        {
            return subscription
        }
        let stored = platform == .apns ? text.uppercased() : text
        return PlatformHandle(unchecked: stored, platform: platform, keys: keys)
    }

    // MARK: Batches

    /// The whole body of a batch: a notification and up to ``Hub/directHandleCountMax`` handles.
    static let batchByteCountMax = 4 << 20

    /// Reads a batch (section 5.5). Headers of the notification's part win over those of the request.
    static func readBatch(
        _ fields: HTTPFields,
        body: [UInt8]
    ) throws(HubError) -> (HubNotification, [PlatformHandle]) {
        let type = fields["Content-Type"] ?? ""
        guard let boundary = MultipartMixed.boundary(contentType: type) else {
            throw HubError(.badRequest, "Content-Type '\(type)' is not multipart/mixed with a boundary.")
        }
        let multipart = try MultipartMixed(parsing: body, boundary: boundary)
        func part(_ name: String) throws(HubError) -> MultipartMixed.Part {
            guard let part = multipart.parts.first(where: { $0.name?.lowercased() == name }) else {
                throw HubError(
                    .badRequest,
                    "The body has no part with 'Content-Disposition: inline; name=\(name)'; a batch has the parts notification and devices."
                )
            }
            return part
        }
        let (payload, devices) = (try part("notification"), try part("devices"))
        guard payload.body.count <= Hub.notificationByteCountMax else {
            throw HubError(
                .tooLarge,
                "The notification is longer than \(Hub.notificationByteCountMax) bytes."
            )
        }
        var merged = payload.fields
        for line in fields.lines where merged[line.name] == nil { merged.append(line.name, line.value) }
        let notification = HubNotification(
            format: try format(merged),
            body: payload.body,
            headers: try platformHeaders(merged)
        )
        guard case .native(let platform) = notification.format else {
            throw HubError(.badRequest, "A batch has the format of one platform; template sends go to tags.")
        }
        let handles = try deviceList(devices.body).map { directHandle($0, platform, nil) }
        return (notification, handles)
    }

    /// A JSON array of strings; a sample of the documentation has them in single quotes.
    private static func deviceList(_ bytes: [UInt8]) throws(HubError) -> [String] {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            let isSingleQuoted = !bytes.contains(UInt8(ascii: "\""))
            let quoted = bytes.map { $0 == UInt8(ascii: "'") ? UInt8(ascii: "\"") : $0 }
            guard isSingleQuoted, let other = try? JSONValue(parsing: quoted) else {
                throw HubError(.badRequest, "The part devices is not JSON: \(error).")
            }
            value = other
        }
        var handles: [String] = []
        for item in value.arrayValue ?? [.null] {
            guard let text = item.stringValue, !text.isEmpty else {
                throw HubError(
                    .badRequest,
                    "The part devices must be a JSON array of handles, each a string that is not empty."
                )
            }
            handles.append(text)
        }
        return handles
    }

    /// The moment of a scheduled send, UTC unless it says otherwise (section 5.6). A sample of Microsoft's puts quotes around
    /// the T.
    static func scheduleTime(_ fields: HTTPFields) throws(HubError) -> Timestamp {
        guard let text = fields[HubHeader.scheduleTime], !text.isEmpty else {
            throw HubError(
                .badRequest,
                "\(HubHeader.scheduleTime) is missing; it holds a time such as 2030-01-02T10:20:30."
            )
        }
        let plain = text.split(separator: "'", omittingEmptySubsequences: false)
        let unquoted = plain.count == 3 && plain[1] == "T" ? plain.joined() : text
        guard let time = Timestamp(parsing: unquoted) else {
            throw HubError(
                .badRequest,
                "\(HubHeader.scheduleTime) '\(text)' is not a time such as 2030-01-02T10:20:30, in UTC."
            )
        }
        return time
    }

    /// `test`, `test=` or `test=true`: the outcome is awaited and told; .NET adds it to every request, and only sends read it. `explain` the same.
    static func isSet(_ name: String, _ target: RequestTarget) throws(HubError) -> Bool {
        switch target.parameter(name)?.lowercased() {
        case nil, "false": return false
        case "", "true": return true
        case let value?:
            throw HubError(.badRequest, "The parameter \(name) is '\(value)'; allowed are true and false.")
        }
    }

    /// The Java SDK loses the format of Apple notifications that carry own headers.
    private static func format(_ fields: HTTPFields) throws(HubError) -> HubNotification.Format {
        guard let text = fields[HubHeader.format], !text.isEmpty else {
            return fields.lines.contains { $0.name.lowercased().hasPrefix("apns-") }
                ? .native(.apns) : .template
        }
        guard let format = HubNotification.Format(text) else {
            throw HubError(
                .badRequest,
                "\(HubHeader.format) '\(text)' is not supported. Supported are template, apple, gcm, fcm, fcmv1, windows, windowsphone, adm, baidu, browser and xiaomi."
            )
        }
        return format
    }

    private static let passedOn = ["apns-", "x-wns-", "x-windowsphone-", "x-baidu-"]
    /// The last three are Web Push's (RFC 8030 section 5).
    private static let passedOnNames: Set = ["x-notificationclass", "x-messageid", "ttl", "urgency", "topic"]

    private static func platformHeaders(
        _ fields: HTTPFields
    ) throws(HubError) -> [RegistrationTemplate.Header] {
        var headers: [RegistrationTemplate.Header] = []
        for line in fields.lines {
            let name = line.name.lowercased()
            if passedOn.contains(where: { name.hasPrefix($0) }) || passedOnNames.contains(name) {
                headers.append(.init(line.name, line.value))
            }
        }
        func has(_ name: String) -> Bool { headers.contains { $0.name.lowercased() == name } }
        // A Python client's names for two of Web Push.
        for (name, own) in [
            ("ServiceBusNotification-TimeToLive", "TTL"), ("ServiceBusNotification-Urgency", "Urgency"),
        ] {
            if let value = fields[name], !has(own.lowercased()) { headers.append(.init(own, value)) }
        }
        if let priority = fields["X-Apns-Priority"], !has("apns-priority") {
            headers.append(.init("apns-priority", priority))
        }
        if let expiry = fields[HubHeader.apnsExpiry] ?? fields["ServiceBusNotification-ApnsExpiry"],
            !has("apns-expiration")
        {
            guard let time = ExpiryText.parse(expiry) else {
                throw HubError(
                    .badRequest,
                    "\(HubHeader.apnsExpiry) '\(expiry)' is not a time such as 2030-01-02T10:20:30Z or 01/02/2030 10:20:30."
                )
            }
            headers.append(.init("apns-expiration", String(time.seconds)))
        }
        return headers
    }
}

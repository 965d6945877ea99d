import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import TidingsModels

/// Reads a send (protocol reference, sections 5.1 to 5.3).
enum NotificationRequest {
    static func read(
        _ request: HTTPRequest,
        body: [UInt8]
    ) throws(HubError) -> (HubNotification, tags: String) {
        if request.target.parameter("direct") != nil {
            throw HubError(.badRequest, "Direct sends (?direct) are not offered; send to tags.")
        }
        let fields = request.fields
        guard !body.isEmpty else { throw HubError(.badRequest, "The notification has no body.") }
        let notification = HubNotification(
            format: try format(fields),
            body: body,
            headers: try platformHeaders(fields)
        )
        return (notification, fields[HubHeader.tags] ?? "")
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

    /// `test`, `test=` or `test=true`: the outcome is awaited and told. .NET adds it to every request; only sends read it.
    static func isTest(_ target: RequestTarget) throws(HubError) -> Bool {
        switch target.parameter("test")?.lowercased() {
        case nil, "false": return false
        case "", "true": return true
        case let value?:
            throw HubError(.badRequest, "The parameter test is '\(value)'; allowed are true and false.")
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

    private static func platformHeaders(
        _ fields: HTTPFields
    ) throws(HubError) -> [RegistrationTemplate.Header] {
        var headers: [RegistrationTemplate.Header] = []
        for line in fields.lines {
            let name = line.name.lowercased()
            if passedOn.contains(where: { name.hasPrefix($0) }) || name == "x-notificationclass"
                || name == "x-messageid"
            {
                headers.append(.init(line.name, line.value))
            }
        }
        func has(_ name: String) -> Bool { headers.contains { $0.name.lowercased() == name } }
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

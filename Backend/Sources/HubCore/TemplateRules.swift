import JSONBytes
package import TidingsModels
import XMLBytes

/// What a platform demands of a template (protocol reference, sections 3.2 and 7.4).
enum TemplateRules {
    static let nameCountMax = 200

    static func check(_ template: RegistrationTemplate, platform: Platform) throws(HubError) {
        if let name = template.name, name.count > nameCountMax {
            throw HubError(
                .badRequest,
                "TemplateName has \(name.count) characters, at most \(nameCountMax) are allowed."
            )
        }
        for header in template.headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy({ isNameByte($0) }) else {
                throw HubError(
                    .badRequest,
                    "The header name '\(header.name)' holds a character that no header name may hold."
                )
            }
            guard header.value.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
                throw HubError(
                    .badRequest,
                    "The value of the header '\(header.name)' holds a control character."
                )
            }
        }
        switch platform {
        case .apns: try checkApple(template)
        case .wns: try checkWindows(template)
        case .mpns: try checkWindowsPhone(template)
        case .gcm, .adm, .browser, .xiaomi: break
        case .baidu: try checkBaidu(template)
        case .fcmV1: try checkFCMv1(template)
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        HubTag.isLegal(byte) && ![UInt8(ascii: "@"), UInt8(ascii: "#"), UInt8(ascii: ":")].contains(byte)
    }

    /// A date, Unix seconds, or an expression, in the form that `apns-expiration` takes.
    static func expiry(_ text: String) throws(HubError) -> String {
        if try TemplateExpression(parsing: text) != nil { return text }
        if let seconds = Int64(text), seconds >= 0 { return String(seconds) }
        guard let time = ExpiryText.parse(text) else {
            throw HubError(
                .badRequest,
                "Expiry '\(text)' is neither a date such as 2030-01-02T10:20:30Z, nor Unix seconds, nor an expression."
            )
        }
        return String(time.seconds)
    }

    private static func checkApple(_ template: RegistrationTemplate) throws(HubError) {
        if let priority = template.priority, try TemplateExpression(parsing: priority) == nil,
            UInt8(priority) == nil
        {
            throw HubError(
                .badRequest,
                "Priority '\(priority)' is neither a number from 0 to 255 nor an expression."
            )
        }
        for header in template.headers {
            let name = header.name.lowercased()
            guard name.hasPrefix("apns-") else {
                throw HubError(
                    .badRequest,
                    "The header '\(header.name)' is not allowed: names in ApnsHeaders begin with 'apns-'."
                )
            }
            guard try TemplateExpression(parsing: header.value) == nil else { continue }
            if name == "apns-expiration", Int64(header.value) == nil {
                throw HubError(.badRequest, "apns-expiration '\(header.value)' is not an integer.")
            }
            if name == "apns-priority", UInt8(header.value) == nil {
                throw HubError(.badRequest, "apns-priority '\(header.value)' is not a number from 0 to 255.")
            }
        }
    }

    private static func checkWindows(_ template: RegistrationTemplate) throws(HubError) {
        guard let type = template.headers.first(where: { $0.name.lowercased() == "x-wns-type" }) else {
            throw HubError(.badRequest, "WnsHeaders must hold X-WNS-Type.")
        }
        if let empty = template.headers.first(where: { $0.value.isEmpty }) {
            throw HubError(.badRequest, "The header '\(empty.name)' has an empty value.")
        }
        if type.value.lowercased() == "wns/raw" { return }
        guard let root = try? XMLElement(parsing: Array(template.body.utf8)),
            ["toast", "tile", "badge"].contains(root.name.local.lowercased())
        else {
            throw HubError(
                .badRequest,
                "The body of a Windows template must be XML with the root toast, tile or badge, unless X-WNS-Type is wns/raw."
            )
        }
    }

    private static func checkWindowsPhone(_ template: RegistrationTemplate) throws(HubError) {
        let notificationClass = template.headers.first { $0.name.lowercased() == "x-notificationclass" }?
            .value
        let isRaw = notificationClass.flatMap { Int($0) }.map {
            (3...10).contains($0) || (13...20).contains($0) || (23...31).contains($0)
        }
        if isRaw == true { return }
        guard let root = try? XMLElement(parsing: Array(template.body.utf8)),
            root.name == .init("Notification", in: "WPNotification"),
            root.elements.contains(where: { ["Tile", "Toast"].contains($0.name.local) })
        else {
            throw HubError(
                .badRequest,
                "The body of a Windows Phone template must be <wp:Notification xmlns:wp=\"WPNotification\"> with a Tile or Toast, unless the class is raw."
            )
        }
    }

    private static func checkBaidu(_ template: RegistrationTemplate) throws(HubError) {
        if let type = template.headers.first(where: { $0.name.lowercased() == "x-baidu-message-type" }),
            Int(type.value) == nil
        {
            throw HubError(.badRequest, "MessageType '\(type.value)' is not a number.")
        }
    }

    private static func checkFCMv1(_ template: RegistrationTemplate) throws(HubError) {
        guard case .object? = (try? JSONValue(parsing: Array(template.body.utf8)))?["message"] else {
            throw HubError(
                .badRequest,
                "The body of an FcmV1 template must be a JSON object with the member 'message'."
            )
        }
    }
}

/// The three date forms of `ServiceBusNotification-Apns-Expiry` and of `Expiry`.
package enum ExpiryText {
    /// W3C (`2030-01-02T10:20:30Z`), and .NET's and Java's `01/02/2030 10:20:30`, UTC.
    package static func parse(_ text: String) -> Timestamp? {
        if let time = Timestamp(parsing: text) { return time }
        let parts = text.split(separator: " ")
        guard parts.count == 2 else { return nil }
        let date = parts[0].split(separator: "/").compactMap { Int($0) }
        let clock = parts[1].split(separator: ":").compactMap { Int($0) }
        guard date.count == 3, clock.count == 3, date.allSatisfy({ $0 >= 0 }), clock.allSatisfy({ $0 >= 0 })
        else { return nil }
        return Timestamp(
            year: date[2],
            month: date[0],
            day: date[1],
            hour: clock[0],
            minute: clock[1],
            second: clock[2]
        )
    }
}

import TidingsModels
import XMLBytes

/// What MPNS takes (push services reference, section 4.1): the kind of a notification stands in its headers, not in its body.
extension PayloadRules {
    enum PhoneKind: String {
        case tile, toast, raw

        /// `X-WindowsPhone-Target`; raw notifications have none.
        var target: String? {
            switch self {
            case .tile: "token"
            case .toast: "toast"
            case .raw: nil
            }
        }

        /// `X-NotificationClass` for delivery at once.
        var immediateClass: String {
            switch self {
            case .tile: "1"
            case .toast: "2"
            case .raw: "3"
            }
        }

        /// The kind of a notification class: 1, 2 and 3 at once, 11 to 13 within 450 s, 21 to 23 within 900 s; what .NET calls raw besides.
        init?(notificationClass text: String) {
            switch Int(text) {
            case 1, 11, 21: self = .tile
            case 2, 12, 22: self = .toast
            case .some(3...10), .some(13...20), .some(23...31): self = .raw
            default: return nil
            }
        }
    }

    /// The largest raw notification, in bytes.
    private static let phoneRawByteCountMax = 1024

    /// As .NET does, from the body where the headers say nothing.
    private static func phoneKind(
        _ headers: [RegistrationTemplate.Header],
        _ body: [UInt8]
    ) throws(HubError) -> PhoneKind {
        func value(_ name: String) -> String? { headers.first { $0.name.lowercased() == name }?.value }
        switch value("x-windowsphone-target")?.lowercased() {
        case "toast": return .toast
        case "token", "tile": return .tile
        case "raw": return .raw
        case let other?:
            throw HubError(
                .badRequest,
                "X-WindowsPhone-Target '\(other)' is not toast, token (for a tile) or raw."
            )
        case nil: break
        }
        if let kind = value("x-notificationclass").flatMap({ PhoneKind(notificationClass: $0) }) {
            return kind
        }
        guard let root = try? XMLElement(parsing: body),
            root.name == .init("Notification", in: "WPNotification")
        else { return .raw }
        let names = Set(root.elements.map(\.name.local))
        return names.contains("Toast") ? .toast : names.contains("Tile") ? .tile : .raw
    }

    static func checkPhone(_ notification: HubNotification) throws(HubError) {
        guard try phoneKind(notification.headers, notification.body) != .raw else { return }
        _ = try xml(notification.body, .mpns)
    }

    static func phone(
        _ body: [UInt8],
        _ given: [RegistrationTemplate.Header]
    ) throws(HubError) -> PlatformPayload {
        let kind = try phoneKind(given, body)
        if kind != .raw { _ = try xml(body, .mpns) }
        var headers = given.filter { $0.name.lowercased() == "x-notificationclass" }
        if headers.isEmpty { headers.append(.init("X-NotificationClass", kind.immediateClass)) }
        if let target = kind.target { headers.append(.init("X-WindowsPhone-Target", target)) }
        headers.append(.init("Content-Type", kind == .raw ? "application/octet-stream" : "text/xml"))
        let bytes = kind == .raw ? body : withoutDeclaration(body)
        guard !bytes.isEmpty else {
            throw HubError(.badRequest, "A windowsphone notification must not be empty.")
        }
        let countMax = kind == .raw ? phoneRawByteCountMax : byteCountMax(.mpns)
        guard bytes.count <= countMax else { throw tooLarge(bytes.count, countMax, .mpns) }
        return PlatformPayload(platform: .mpns, headers: headers, body: bytes)
    }
}

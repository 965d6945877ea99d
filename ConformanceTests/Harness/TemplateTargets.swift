package import HubClient
package import TidingsModels

/// Registrations whose pushes carry the send's `messageParam`.
package enum TemplateTargets {
    package static let platforms: [Platform] = [.apns, .fcmV1, .wns]

    /// A template whose text is `$(messageParam)`, without an expiry: it waits for devices that are away.
    private static func template(_ platform: Platform) -> RegistrationTemplate {
        switch platform {
        case .wns:
            RegistrationTemplate(
                body:
                    "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">$(messageParam)</text></binding></visual></toast>",
                headers: [.init("X-WNS-Type", "wns/toast")]
            )
        case .mpns:
            RegistrationTemplate(
                body:
                    "<wp:Notification xmlns:wp=\"WPNotification\"><wp:Toast><wp:Text1>$(messageParam)</wp:Text1></wp:Toast></wp:Notification>",
                headers: [.init("X-WindowsPhone-Target", "toast"), .init("X-NotificationClass", "2")]
            )
        case .adm: RegistrationTemplate(body: #"{"data":{"message":"$(messageParam)"}}"#)
        case .browser: RegistrationTemplate(body: #"{"message":"$(messageParam)"}"#)
        case .fcmV1: RegistrationTemplate(body: #"{"message":{"data":{"message":"$(messageParam)"}}}"#)
        default: RegistrationTemplate(body: #"{"aps":{"alert":"$(messageParam)"}}"#)
        }
    }

    package static func register(
        _ handle: String,
        _ platform: Platform,
        tags: [String],
        at hub: HubClient
    ) async throws {
        _ = try await hub.create(
            RegistrationContent(
                handle: try PlatformHandle(shown: handle, platform: platform),
                tags: try tags.map { try HubTag($0) },
                template: template(platform)
            )
        )
    }
}

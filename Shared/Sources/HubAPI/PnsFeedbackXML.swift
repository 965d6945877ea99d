package import TidingsModels
import XMLBytes

/// One record of feedback (protocol reference, section 5.10). A file of them has one on each line.
package enum PnsFeedbackXML {
    /// - Parameter reason: The push service's own words; an element of ours, the last one.
    package static func line(
        time: Timestamp,
        error: String,
        platform: Platform,
        handle: String,
        registration: String,
        installation: String?,
        notification: NotificationID,
        reason: String
    ) -> String {
        var text =
            "<PnsFeedback xmlns=\"\(RegistrationXML.connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\">"
        func add(_ name: String, _ value: String) { text += "<\(name)>\(XMLText.escaped(value))</\(name)>" }
        add("FeedbackTime", time.description)
        add("NotificationSystemError", error)
        add("Platform", platform.format)
        add("PnsHandle", handle)
        if !registration.isEmpty { add("RegistrationId", registration) }
        if let installation { add("InstallationId", installation) }
        add("NotificationId", notification.text)
        add("Reason", reason)
        return text + "</PnsFeedback>"
    }
}

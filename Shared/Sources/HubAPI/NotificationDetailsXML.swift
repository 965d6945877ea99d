package import TidingsModels
import XMLBytes

/// The telemetry of a send (protocol reference, section 5.9). Element order matters to .NET.
package enum NotificationDetailsXML {
    /// The platforms in the order of the contract, with the names of their elements; `PnsErrorDetailsUri` stands before the last.
    private static let counts: [(Platform, String)] = [
        (.apns, "Apns"), (.mpns, "Mpns"), (.wns, "Wns"), (.gcm, "Gcm"), (.adm, "Adm"), (.baidu, "Baidu"),
        (.browser, "Browser"), (.xiaomi, "Xiaomi"), (.fcmV1, "FcmV1"),
    ]

    /// - Parameters:
    ///   - location: The `sb:` address of the notification.
    ///   - errorDetails: Where the push services' errors are told; nil for none.
    package static func text(
        _ details: NotificationDetails,
        location: String,
        errorDetails: String? = nil
    ) -> String {
        var text =
            "<NotificationDetails xmlns=\"\(RegistrationXML.connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\">"
        func add(_ name: String, _ value: String) { text += "<\(name)>\(XMLText.escaped(value))</\(name)>" }
        add("NotificationId", details.id.text)
        add("Location", location)
        add("State", details.state.rawValue)
        add("EnqueueTime", details.enqueued.description)
        if let started = details.started { add("StartTime", started.description) }
        if let ended = details.ended { add("EndTime", ended.description) }
        add("NotificationBody", String(decoding: details.notification.body, as: UTF8.self))
        if !details.tags.isEmpty { add("Tags", details.tags) }
        add("TargetPlatforms", targetPlatforms(details))
        for (platform, name) in counts {
            if platform == .fcmV1, let errorDetails { add("PnsErrorDetailsUri", errorDetails) }
            guard let outcomes = details.outcomes[platform], !outcomes.isEmpty else { continue }
            text += "<\(name)OutcomeCounts>"
            for (outcome, count) in outcomes.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                text += "<Outcome><Name>\(outcome.rawValue)</Name><Count>\(count)</Count></Outcome>"
            }
            text += "</\(name)OutcomeCounts>"
        }
        return text + "</NotificationDetails>"
    }

    private static func targetPlatforms(_ details: NotificationDetails) -> String {
        switch details.notification.format {
        case .native(let platform): platform.format
        case .template:
            details.outcomes.isEmpty
                ? "template"
                : details.outcomes.keys.map { $0.format + "template" }.sorted().joined(separator: ",")
        }
    }

    package static func read(_ bytes: [UInt8]) throws(HubError) -> NotificationDetails {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badGateway, "The hub's answer is not XML: \(error).")
        }
        func text(_ name: String) -> String? { root.first(name)?.text }
        guard root.name.local == "NotificationDetails",
            let id = text("NotificationId").flatMap({ NotificationID($0) })
        else {
            throw HubError(.badGateway, "The hub's answer holds no NotificationDetails.")
        }
        var outcomes: [Platform: [Outcome: Int]] = [:]
        var total = 0
        for (platform, name) in counts {
            for item in root.first(name + "OutcomeCounts")?.elements ?? [] {
                guard let count = item.first("Count").flatMap({ Int($0.text) }) else { continue }
                let outcome = item.first("Name").flatMap { Outcome(rawValue: $0.text) } ?? .unknownError
                outcomes[platform, default: [:]][outcome, default: 0] += count
                total += count
            }
        }
        let platforms = text("TargetPlatforms") ?? "template"
        return NotificationDetails(
            id: id,
            state: text("State").flatMap { NotificationState(rawValue: $0) } ?? .unknown,
            enqueued: text("EnqueueTime").flatMap(Timestamp.init(parsing:)) ?? Timestamp(milliseconds: 0),
            started: text("StartTime").flatMap(Timestamp.init(parsing:)),
            ended: text("EndTime").flatMap(Timestamp.init(parsing:)),
            notification: HubNotification(
                format: HubNotification.Format(platforms) ?? .template,
                body: Array((text("NotificationBody") ?? "").utf8)
            ),
            tags: text("Tags") ?? "",
            targetCount: total,
            outcomes: outcomes,
            errorDetails: text("PnsErrorDetailsUri")
        )
    }
}

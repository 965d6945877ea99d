package import TidingsModels
import XMLBytes

/// The answer to a test send (protocol reference, section 5.8). Every element is required, in this order.
package enum NotificationOutcomeXML {
    package static func text(_ outcome: NotificationOutcome) -> String {
        var text =
            "<NotificationOutcome xmlns=\"\(RegistrationXML.connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\">"
            + "<Success>\(outcome.success)</Success><Failure>\(outcome.failure)</Failure>"
        // SDKs fail on a missing element, and all of them take the nil form.
        guard !outcome.results.isEmpty else {
            return text + "<Results i:nil=\"true\"/></NotificationOutcome>"
        }
        text += "<Results>"
        for result in outcome.results {
            text +=
                "<RegistrationResult><ApplicationPlatform>\(result.applicationPlatform.format)</ApplicationPlatform>"
                + "<PnsHandle>\(XMLText.escaped(result.pnsHandle))</PnsHandle>"
                + "<RegistrationId>\(result.registrationID)</RegistrationId>"
                + "<Outcome>\(XMLText.escaped(result.outcome))</Outcome></RegistrationResult>"
        }
        return text + "</Results></NotificationOutcome>"
    }

    package static func read(_ bytes: [UInt8]) throws(HubError) -> NotificationOutcome {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badGateway, "The hub's answer is not XML: \(error).")
        }
        func count(_ name: String) -> Int? { root.first(name).flatMap { Int($0.text) } }
        guard root.name.local == "NotificationOutcome", let success = count("Success"),
            let failure = count("Failure")
        else { throw HubError(.badGateway, "The hub's answer holds no NotificationOutcome.") }
        var outcome = NotificationOutcome(success: success, failure: failure)
        for item in root.first("Results")?.elements ?? [] {
            guard let platform = item.first("ApplicationPlatform").flatMap({ Platform(format: $0.text) }),
                let handle = item.first("PnsHandle")?.text,
                let id = item.first("RegistrationId").map({ RegistrationID(unchecked: $0.text) }),
                let text = item.first("Outcome")?.text
            else { throw HubError(.badGateway, "The hub's answer holds an incomplete RegistrationResult.") }
            outcome.results.append(
                RegistrationResult(
                    applicationPlatform: platform,
                    pnsHandle: handle,
                    registrationID: id,
                    outcome: text
                )
            )
        }
        return outcome
    }
}

package import TidingsModels
import XMLBytes

/// The classic error body of the hub protocol.
package enum HubErrorXML {
    package static func text(_ error: HubError, trackingID: String, now: Timestamp) -> String {
        // The original's text goes on with a point of its own.
        let message = error.message.hasSuffix(".") ? String(error.message.dropLast()) : error.message
        return "<Error><Code>\(error.httpStatus)</Code><Detail>\(XMLText.escaped(message))"
            + ".TrackingId:\(trackingID)_G0,TimeStamp:\(now.american)</Detail></Error>"
    }

    /// The detail of an error body, or its text when it has another form.
    package static func detail(_ bytes: [UInt8]) -> String {
        guard let root = try? XMLElement(parsing: bytes), let detail = root.first("Detail") else {
            return String(decoding: bytes.prefix(500), as: UTF8.self)
        }
        let text = detail.text
        return text.firstRange(of: ".TrackingId:").map { String(text[...$0.lowerBound]) } ?? text
    }
}

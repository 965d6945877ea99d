package import HTTPMessages
package import TidingsModels

extension HTTPFields {
    /// Refuses a body in a coding (RFC 9110 section 8.4) that nobody here undoes.
    package func refuseContentCoding() throws(HubError) {
        guard let coding = self["Content-Encoding"], !coding.isEmpty, coding.lowercased() != "identity" else {
            return
        }
        throw HubError(.badRequest, "The Content-Encoding '\(coding)' is not taken; send the body as it is.")
    }
}

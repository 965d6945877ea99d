package import TidingsModels

/// What the hub demands of a registration before it stores it.
package enum RegistrationRules {
    package static let bodyByteCountMax = 64 << 10

    /// Checks what a client states about a registration of its own.
    package static func check(_ content: RegistrationContent) throws(HubError) {
        for tag in content.tags { _ = try HubTag(tag.text) }
        try checkContent(content)
    }

    /// What holds for derived registrations as well, whose tags the hub makes.
    static func checkContent(_ content: RegistrationContent) throws(HubError) {
        let tagByteCount = content.tags.reduce(0) { $0 + $1.text.utf8.count + 1 }
        guard tagByteCount <= HubTag.listByteCountMax else {
            throw HubError(
                .badRequest,
                "The tags have a serialised size of \(tagByteCount) bytes, at most \(HubTag.listByteCountMax) are allowed."
            )
        }
        if let template = content.template {
            _ = try CompiledTemplate(template, platform: content.handle.platform)
        }
    }
}

/// The condition of a PUT or DELETE (protocol reference, section 3.5).
package enum EntityCondition: Equatable, Sendable {
    /// No `If-Match`: a PUT creates or updates.
    case none
    /// `*`: the entity must exist.
    case exists
    case etag(Int)

    /// Reads `"3"`, `W/"3"`, `3` and `*`.
    package init(ifMatch: String?) throws(HubError) {
        guard let text = ifMatch else {
            self = .none
            return
        }
        if text == "*" {
            self = .exists
            return
        }
        let digits = text.drop { $0 == "W" || $0 == "/" || $0 == "\"" }.prefix { $0.isNumber }
        guard let etag = Int(digits) else {
            throw HubError(.badRequest, "If-Match '\(text)' is neither * nor an ETag such as \"3\".")
        }
        self = .etag(etag)
    }

    /// Decides on an entity with that ETag, nil for none.
    package func check(existing etag: Int?) throws(HubError) {
        switch (self, etag) {
        case (.none, _), (.exists, .some): break
        case (.exists, nil), (.etag, nil): throw HubError(.notFound, "The registration does not exist.")
        case (.etag(let wanted), let etag?):
            guard wanted == etag else {
                throw HubError(
                    .preconditionFailed,
                    "If-Match names ETag \(wanted), the registration has ETag \(etag)."
                )
            }
        }
    }
}

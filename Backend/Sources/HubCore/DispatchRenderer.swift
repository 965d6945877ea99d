package import TidingsModels

/// Renders a send for registrations, each render unit once.
package struct DispatchRenderer: Sendable {
    /// Payloads are shared by registrations that agree in these.
    package struct UnitKey: Hashable, Sendable {
        var platform: Platform
        var template: TemplateKey?
        var variables: [String: String]
    }

    struct TemplateKey: Hashable, Sendable {
        var body: String
        var headers: [String]
        var expiry: String?
        var priority: String?

        init(_ template: RegistrationTemplate) {
            body = template.body
            headers = template.headers.flatMap { [$0.name, $0.value] }
            expiry = template.expiry
            priority = template.priority
        }
    }

    private struct TemplateID: Hashable {
        var platform: Platform
        var key: TemplateKey
    }

    private let notification: HubNotification
    private let expression: TagExpression?
    private let values: [String: String]
    private let hasLegacyGoogle: Bool
    private var templates: [TemplateID: Result<CompiledTemplate, HubError>] = [:]
    private var payloads: [UnitKey: Result<PlatformPayload, PayloadRefusal>] = [:]

    package init(
        _ notification: HubNotification,
        expression: TagExpression?,
        hasLegacyGoogle: Bool
    ) throws(HubError) {
        self.notification = notification
        self.expression = expression
        self.hasLegacyGoogle = hasLegacyGoogle
        values = notification.format == .template ? try TemplateValues.read(notification.body) : [:]
    }

    /// True when the send addresses this registration as it is now.
    package func addresses(_ registration: Registration) -> Bool {
        let content = registration.content
        switch notification.format {
        case .native(let platform):
            guard content.template == nil, content.handle.platform == platform else { return false }
        case .template: guard content.template != nil else { return false }
        }
        return expression?.matches(Set(content.tags)) ?? true
    }

    /// The render unit of a registration that the send addresses.
    package mutating func key(_ registration: Registration) -> UnitKey {
        let content = registration.content
        guard let template = content.template else {
            return UnitKey(platform: content.handle.platform, template: nil, variables: [:])
        }
        var variables: [String: String] = [:]
        if !content.pushVariables.isEmpty,
            case .success(let compiled) = self.compiled(template, content.handle.platform)
        {
            for (name, value) in content.pushVariables {
                let lower = name.lowercased()
                // Values of the send win over those of the registration.
                if values[lower] == nil, compiled.propertyNames.contains(lower) { variables[lower] = value }
            }
        }
        return UnitKey(
            platform: content.handle.platform,
            template: TemplateKey(template),
            variables: variables
        )
    }

    package mutating func payload(
        _ key: UnitKey,
        for registration: Registration
    ) -> Result<PlatformPayload, PayloadRefusal> {
        if let known = payloads[key] { return known }
        let made = render(key, registration.content)
        payloads[key] = made
        return made
    }

    private mutating func compiled(
        _ template: RegistrationTemplate,
        _ platform: Platform
    ) -> Result<CompiledTemplate, HubError> {
        let id = TemplateID(platform: platform, key: TemplateKey(template))
        if let known = templates[id] { return known }
        let made = Result<CompiledTemplate, HubError> { () throws(HubError) in
            try CompiledTemplate(template, platform: platform)
        }
        templates[id] = made
        return made
    }

    private mutating func render(
        _ key: UnitKey,
        _ content: RegistrationContent
    ) -> Result<PlatformPayload, PayloadRefusal> {
        var body = notification.body
        var headers = notification.headers
        if let template = content.template {
            switch compiled(template, key.platform) {
            case .failure(let error):
                return .failure(PayloadRefusal(outcome: .invalidNotificationFormat, reason: error.message))
            case .success(let compiled):
                let rendered = compiled.render(values.merging(key.variables) { sent, _ in sent })
                body = rendered.body
                // The template's own headers win over those of the send.
                let names = Set(rendered.headers.map { $0.name.lowercased() })
                headers = rendered.headers + headers.filter { !names.contains($0.name.lowercased()) }
            }
        }
        return Result { () throws(PayloadRefusal) in
            try PayloadRules.payload(
                body,
                headers: headers,
                platform: key.platform,
                hasLegacyCredentials: hasLegacyGoogle
            )
        }
    }
}

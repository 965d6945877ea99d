import JSONBytes
package import TidingsModels
import XMLBytes

/// A template ready to be rendered: literal bytes and expressions, so that rendering is one pass and runs no parser.
package struct CompiledTemplate: Sendable {
    enum Segment: Equatable, Sendable {
        case bytes([UInt8])
        /// A JSON string, with its quotes.
        case jsonString(TemplateExpression)
        /// A JSON number when the value is one, else a string.
        case jsonNumber(TemplateExpression)
        /// Text or attribute value.
        case xmlText(TemplateExpression)
    }

    enum HeaderValue: Equatable, Sendable {
        case literal(String)
        case expression(TemplateExpression)

        init(_ text: String) throws(HubError) {
            if let expression = try TemplateExpression(parsing: text) {
                self = .expression(expression)
            } else {
                self = .literal(text)
            }
        }

        func value(_ properties: [String: String]) -> String {
            let text: String =
                switch self {
                case .literal(let text): text
                case .expression(let expression): expression.value(properties)
                }
            // A line end in a value would be a header injection.
            return String(text.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7F })
        }
    }

    let platform: Platform
    let segments: [Segment]
    let headers: [(name: String, value: HeaderValue)]
    /// The properties that rendering reads, in lower case. Registrations that agree in these share one payload.
    package let propertyNames: Set<String>

    /// Checks a template as ``RegistrationRules`` demands and compiles it.
    package init(_ template: RegistrationTemplate, platform: Platform) throws(HubError) {
        self.platform = platform
        var headers: [(name: String, value: HeaderValue)] = []
        for header in template.headers { headers.append((header.name, try HeaderValue(header.value))) }
        func has(_ name: String) -> Bool { headers.contains { $0.name.lowercased() == name } }
        // A header that the template names wins over its expiry and priority.
        if let expiry = template.expiry {
            let value = try HeaderValue(try TemplateRules.expiry(expiry))
            if !has("apns-expiration") { headers.append(("apns-expiration", value)) }
        }
        if let priority = template.priority, !has("apns-priority") {
            headers.append(("apns-priority", try HeaderValue(priority)))
        }
        segments = try Self.compileBody(template, platform)
        self.headers = headers
        var names = Set<String>()
        for segment in segments {
            switch segment {
            case .bytes: break
            case .jsonString(let expression), .jsonNumber(let expression), .xmlText(let expression):
                names.formUnion(expression.propertyNames)
            }
        }
        for header in headers {
            if case .expression(let expression) = header.value { names.formUnion(expression.propertyNames) }
        }
        propertyNames = names
        try TemplateRules.check(template, platform: platform)
    }

    private static func compileBody(
        _ template: RegistrationTemplate,
        _ platform: Platform
    ) throws(HubError) -> [Segment] {
        let bytes = Array(template.body.utf8)
        let isXML = platform.usesXML && bytes.first { $0 > 0x20 } == UInt8(ascii: "<")
        if isXML { return try XMLTemplate.compile(bytes) }
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            throw HubError(
                .badRequest,
                "The template body for \(platform.format) is not \(platform.usesXML ? "XML or " : "")JSON: \(error)."
            )
        }
        guard case .object = value else {
            throw HubError(.badRequest, "The template body must be a JSON object.")
        }
        var writer = JSONTemplateWriter()
        do throws(HubError) { try writer.write(value) } catch {
            guard let text = writer.failing, let offset = TemplatePosition.offset(of: text, inJSON: bytes)
            else { throw error }
            throw TemplatePosition.error(error, at: offset, in: bytes)
        }
        return writer.finished()
    }

    /// The body and headers for these values, whose names are in lower case.
    package func render(
        _ properties: [String: String]
    ) -> (body: [UInt8], headers: [RegistrationTemplate.Header]) {
        var body: [UInt8] = []
        for segment in segments {
            switch segment {
            case .bytes(let bytes): body += bytes
            case .jsonString(let expression): JSONWriter.write(expression.value(properties), to: &body)
            case .jsonNumber(let expression):
                let value = expression.value(properties)
                if Self.isNumber(value) { body += value.utf8 } else { JSONWriter.write(value, to: &body) }
            case .xmlText(let expression): body += XMLText.escaped(expression.value(properties)).utf8
            }
        }
        var rendered: [RegistrationTemplate.Header] = []
        for header in headers {
            var value = header.value.value(properties)
            // A property that is missing leaves the header out.
            if value.isEmpty { continue }
            if header.name.lowercased() == "apns-expiration", Int64(value) == nil,
                let time = ExpiryText.parse(value)
            {
                value = String(time.seconds)
            }
            rendered.append(.init(header.name, value))
        }
        return (body, rendered)
    }

    /// The number grammar of JSON; a leading minus is taken.
    private static func isNumber(_ text: String) -> Bool {
        if case .number? = try? JSONValue(parsing: Array(text.utf8)) {
            !text.contains { $0 == " " || $0 == "\n" || $0 == "\t" || $0 == "\r" }
        } else {
            false
        }
    }
}

/// Writes a JSON template as segments.
private struct JSONTemplateWriter {
    private var segments: [CompiledTemplate.Segment] = []
    private var pending: [UInt8] = []
    /// The text that is no expression.
    private(set) var failing: String?

    mutating func write(_ value: JSONValue) throws(HubError) {
        switch value {
        case .string(let text):
            failing = text
            guard let expression = try TemplateExpression(parsing: text) else {
                return value.write(to: &pending)
            }
            segments.append(.bytes(pending))
            pending = []
            segments.append(expression.isNumber ? .jsonNumber(expression) : .jsonString(expression))
        case .array(let values):
            pending.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { pending.append(UInt8(ascii: ",")) }
                try write(value)
            }
            pending.append(UInt8(ascii: "]"))
        case .object(let object):
            pending.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { pending.append(UInt8(ascii: ",")) }
                JSONWriter.write(member.name, to: &pending)
                pending.append(UInt8(ascii: ":"))
                try write(member.value)
            }
            pending.append(UInt8(ascii: "}"))
        case .null, .bool, .number: value.write(to: &pending)
        }
    }

    mutating func finished() -> [CompiledTemplate.Segment] {
        if !pending.isEmpty { segments.append(.bytes(pending)) }
        return segments
    }
}

import JSONBytes
package import TidingsModels

/// The values of a template send.
package enum TemplateValues {
    /// Reads a flat JSON object. Names compare without case, so they are returned in lower case; numbers and truth
    /// values count by their JSON text.
    package static func read(_ body: [UInt8]) throws(HubError) -> [String: String] {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: body) } catch {
            throw HubError(.badRequest, "The template notification is not JSON: \(error).")
        }
        guard case .object(let object) = value else {
            throw HubError(
                .badRequest,
                "A template notification must be a flat JSON object whose values are strings."
            )
        }
        var values: [String: String] = [:]
        for member in object.members {
            switch member.value {
            case .string(let text), .number(let text): values[member.name.lowercased()] = text
            case .bool(let value): values[member.name.lowercased()] = value ? "true" : "false"
            case .null: break
            case .array, .object:
                throw HubError(
                    .badRequest,
                    "The value of '\(member.name)' must be a string, a number or a truth value."
                )
            }
        }
        return values
    }
}

import JSONBytes
import TidingsModels

/// The text form of a registration's push variables: a JSON object of strings.
enum PushVariables {
    static func text(_ variables: [String: String]) -> String {
        var object = JSONObject()
        for (name, value) in variables.sorted(by: { $0.key < $1.key }) { object[name] = .string(value) }
        return JSONValue.object(object).text
    }

    static func read(_ text: String?) throws(HubError) -> [String: String] {
        guard let text else { return [:] }
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: Array(text.utf8)) } catch {
            throw HubError(.badRequest, "PushVariables is not JSON: \(error).")
        }
        guard case .object(let object) = value else {
            throw HubError(.badRequest, "PushVariables must be a JSON object whose values are strings.")
        }
        var variables: [String: String] = [:]
        for (name, value) in object.members {
            guard let text = value.stringValue else {
                throw HubError(.badRequest, "The push variable '\(name)' must be a string.")
            }
            variables[name] = text
        }
        return variables
    }
}

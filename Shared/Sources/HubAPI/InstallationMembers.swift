import JSONBytes
import TidingsModels

extension InstallationJSON {
    /// Reads the members of an object; errors name the path. Null counts as absent, and names compare without case, since
    /// documentation and SDKs disagree on the case of some.
    struct Members {
        private let object: JSONObject
        let path: String

        init(_ object: JSONObject, _ path: String) {
            self.object = object
            self.path = path
        }

        subscript(name: String) -> JSONValue? {
            let value = object[name] ?? object.member(ignoringCase: name)
            return value == .null ? nil : value
        }

        private func error(_ name: String, _ wanted: String) -> HubError {
            HubError(.badRequest, "'\(path)\(name)' must be \(wanted).")
        }

        func string(_ name: String) throws(HubError) -> String? {
            guard let value = self[name] else { return nil }
            guard let text = value.stringValue else { throw error(name, "a string") }
            return text
        }

        func bool(_ name: String) throws(HubError) -> Bool? {
            guard let value = self[name] else { return nil }
            guard let flag = value.boolValue else { throw error(name, "true or false") }
            return flag
        }

        /// The members of an object of strings, in order.
        func strings(_ name: String) throws(HubError) -> [(name: String, value: String)] {
            guard let value = self[name] else { return [] }
            guard let object = value.objectValue else { throw error(name, "an object of strings") }
            var pairs: [(String, String)] = []
            for member in object.members where member.value != .null {
                guard let text = member.value.stringValue else {
                    throw error("\(name)/\(member.name)", "a string")
                }
                pairs.append((member.name, text))
            }
            return pairs
        }

        func objects(_ name: String) throws(HubError) -> [(String, JSONObject)] {
            guard let value = self[name] else { return [] }
            guard let object = value.objectValue else { throw error(name, "an object of objects") }
            var pairs: [(String, JSONObject)] = []
            for member in object.members where member.value != .null {
                guard let inner = member.value.objectValue else {
                    throw error("\(name)/\(member.name)", "an object")
                }
                pairs.append((member.name, inner))
            }
            return pairs
        }

        /// - Parameter own: Tags that the hub itself adds, and that a client may write back as it read them.
        func tags(_ name: String, dropping own: [HubTag] = []) throws(HubError) -> [HubTag] {
            guard let value = self[name] else { return [] }
            guard let items = value.arrayValue else { throw error(name, "an array of strings") }
            var tags: [HubTag] = []
            var seen = Set(own)
            for item in items {
                guard let text = item.stringValue else { throw error(name, "an array of strings") }
                if seen.insert(HubTag(unchecked: text)).inserted { tags.append(try HubTag(text)) }
            }
            return tags
        }

        func templates(_ name: String) throws(HubError) -> [InstallationTemplate] {
            var templates: [InstallationTemplate] = []
            for (key, object) in try objects(name) {
                let members = Members(object, "\(path)\(name)/\(key)/")
                guard let body = try members.string("body") else {
                    throw HubError(.badRequest, "'\(members.path)body' is missing.")
                }
                templates.append(
                    InstallationTemplate(
                        name: key,
                        body: body,
                        headers: try members.strings("headers").map { .init($0.name, $0.value) },
                        expiry: try members.string("expiry").flatMap { $0.isEmpty ? nil : $0 },
                        tags: try members.tags("tags", dropping: [HubTag(unchecked: key)])
                    )
                )
            }
            return templates
        }
    }
}

import HTTPMessages
import JSONBytes
import ProcessLifecycle

/// Reads one object of the configuration and names what is wrong with it.
struct SettingsReader {
    let object: JSONObject
    let place: String
    let known: Set<String>

    init(_ object: JSONObject, _ place: String, known: Set<String>) {
        self.object = object
        self.place = place
        self.known = known
    }

    func check() throws(ConfigurationError) {
        for member in object.members where !known.contains(member.name) {
            throw ConfigurationError(
                "\(place): the key '\(member.name)' is not known. Known are \(known.sorted().joined(separator: ", "))"
            )
        }
    }

    func text(_ name: String) throws(ConfigurationError) -> String {
        guard let text = object[name]?.stringValue, !text.isEmpty else {
            throw ConfigurationError("\(place): '\(name)' is missing")
        }
        return text
    }

    func url(_ name: String, default fallback: String) throws(ConfigurationError) -> HTTPURL {
        let text = object[name]?.stringValue ?? fallback
        guard let url = HTTPURL(text) else {
            throw ConfigurationError("\(place): '\(name)' '\(text)' is not an http or https URL")
        }
        return url
    }

    func origins(_ name: String) throws(ConfigurationError) -> Set<String> {
        var origins = Set<String>()
        for value in object[name]?.arrayValue ?? [] {
            guard let url = value.stringValue.flatMap({ HTTPURL($0) }) else {
                throw ConfigurationError(
                    "\(place): '\(name)' holds something that is not an http or https URL"
                )
            }
            origins.insert(url.origin)
        }
        return origins
    }

    func file(_ name: String) throws -> [UInt8] {
        let path = try text(name)
        guard let bytes = try Files.read(path) else {
            throw ConfigurationError("\(place): the file '\(path)' of '\(name)' does not exist")
        }
        return bytes
    }
}

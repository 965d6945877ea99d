public import TidingsModels
package import HTTPMessages

/// `Endpoint=sb://…/;SharedAccessKeyName=…;SharedAccessKey=…`: where a hub is and what its holder may do there.
public struct HubConnectionString: Sendable, Equatable {
    /// The namespace root. `sb` stands for https.
    package var endpoint: HTTPURL
    /// The policy.
    public var keyName: String
    package var key: String

    package init(endpoint: HTTPURL, keyName: String, key: String) {
        self.endpoint = endpoint
        self.keyName = keyName
        self.key = key
    }

    /// Reads a connection string; the names compare without case, and the value of a key may hold `=`.
    /// - Throws: ``HubError`` `.badRequest` that names the missing or malformed part, never the key.
    public init(parsing text: String) throws(HubError) {
        var parts: [String: String] = [:]
        for part in text.split(separator: ";") {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard pair.count == 2 else {
                throw HubError(.badRequest, "A part of the connection string has no '='.")
            }
            parts[ASCII.trimmed(pair[0]).lowercased()] = ASCII.trimmed(pair[1])
        }
        func part(_ name: String) throws(HubError) -> String {
            guard let value = parts[name.lowercased()], !value.isEmpty else {
                throw HubError(.badRequest, "The connection string has no \(name).")
            }
            return value
        }
        let endpointText = try part("Endpoint")
        let address = endpointText.hasPrefix("sb://") ? "https" + endpointText.dropFirst(2) : endpointText
        guard let endpoint = HTTPURL(address) else {
            throw HubError(
                .badRequest,
                "The Endpoint of the connection string is not an sb, https or http address."
            )
        }
        self.endpoint = endpoint
        keyName = try part("SharedAccessKeyName")
        key = try part("SharedAccessKey")
    }

    /// The form that every SDK reads: three parts in this order, the endpoint with a final slash, no last semicolon.
    public var text: String {
        let scheme = endpoint.scheme == "https" ? "sb" : "http"
        return
            "Endpoint=\(scheme)://\(endpoint.authority)/;SharedAccessKeyName=\(keyName);SharedAccessKey=\(key)"
    }
}

/// An absolute http or https URL, split as a client needs it (RFC 3986). Percent-encoding is kept byte for byte.
package struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
    package let scheme: String
    /// Without brackets.
    package let host: String
    package let port: Int
    /// Path and query; begins with a slash.
    package let target: String

    /// Nil for another scheme, user information, no host, a bad port, blanks or control characters.
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let schemeEnd = text.firstRange(of: "://")
        else { return nil }
        let scheme = text[..<schemeEnd.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = text[schemeEnd.upperBound...].prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { return nil }
        var host: Substring
        var portText: Substring = ""
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            let after = authority[authority.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            portText = after.dropFirst()
        } else {
            host = authority.prefix { $0 != ":" }
            portText = authority.dropFirst(host.count).dropFirst()
        }
        guard !host.isEmpty else { return nil }
        let defaultPort = scheme == "https" ? 443 : 80
        guard let port = portText.isEmpty ? defaultPort : Int(portText), (1...65535).contains(port) else {
            return nil
        }
        let path = rest.dropFirst(authority.count)
        self.scheme = scheme
        self.host = host.lowercased()
        self.port = port
        target = path.hasPrefix("/") ? String(path) : "/" + path
    }

    /// `host:port` with brackets around an IPv6 address; the port only when it is not the scheme's own.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (scheme == "https" ? 443 : 80) ? name : "\(name):\(port)"
    }

    package var origin: String { "\(scheme)://\(authority)" }
    package var description: String { origin + target }

    /// True for `localhost` and the loopback addresses.
    package var isLoopback: Bool { Self.isLoopback(host) }

    package static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1"
            || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }
}

/// An absolute http or https URL, split as a client needs it (RFC 3986). Percent-encoding is kept byte for byte.
package struct HTTPURL: Sendable, Hashable, CustomStringConvertible {
    package let scheme: String
    /// Without brackets.
    package let host: String
    package let port: Int
    /// Path and query; begins with a slash.
    package let target: String

    /// Nil for another scheme, user information, a host that is neither a name nor an IP address, a bad port, blanks or control
    /// characters.
    ///
    /// The host is what an allow list compares, so it holds nothing that another reader could take for its end: letters,
    /// digits, `-`, `.` and `_`, or an IPv6 address in brackets (RFC 3986 section 3.2.2 allows more, which no DNS name has).
    package init?(_ text: String) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let parts = text.aroundScheme else {
            return nil
        }
        let scheme = parts.scheme.lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = parts.rest.prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        guard !authority.contains("@") else { return nil }
        var host: Substring
        var portText: Substring = ""
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<end]
            guard host.contains(":"),
                host.utf8.allSatisfy({ Hex.digit($0) != nil || $0 == 0x3A || $0 == 0x2E })
            else { return nil }
            let after = authority[authority.index(after: end)...]
            guard after.isEmpty || after.hasPrefix(":") else { return nil }
            portText = after.dropFirst()
        } else {
            host = authority.prefix { $0 != ":" }
            portText = authority.dropFirst(host.count).dropFirst()
            guard !host.isEmpty, host.utf8.allSatisfy(Self.isNameByte) else { return nil }
        }
        let defaultPort = scheme == "https" ? 443 : 80
        guard portText.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = portText.isEmpty ? defaultPort : Int(portText), (1...65535).contains(port)
        else { return nil }
        let path = rest.dropFirst(authority.count)
        self.scheme = scheme
        self.host = host.lowercased()
        self.port = port
        target = path.hasPrefix("/") ? String(path) : "/" + path
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
            true
        default: false
        }
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

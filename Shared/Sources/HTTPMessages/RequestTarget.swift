/// The path and query of a request (RFC 9112 section 3.2, origin form), decoded once.
package struct RequestTarget: Sendable, Equatable {
    /// The text as received.
    package let raw: String
    /// The decoded path segments; an empty last one (a trailing slash) is dropped.
    package let segments: [String]
    /// The decoded query parameters, in order; a parameter without `=` has a nil value.
    package let query: [(name: String, value: String?)]

    /// Nil when the target is not in origin form or holds a broken escape.
    package init?(_ raw: String) {
        guard raw.utf8.first == UInt8(ascii: "/") else { return nil }
        let parts = raw.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var segments: [String] = []
        for segment in parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false) {
            guard let decoded = PercentEncoding.decode(segment) else { return nil }
            segments.append(decoded)
        }
        if segments.last == "" { segments.removeLast() }
        var query: [(name: String, value: String?)] = []
        if parts.count == 2 {
            for parameter in parts[1].split(separator: "&") {
                let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard let name = PercentEncoding.decode(pair[0], plusIsBlank: true) else { return nil }
                guard pair.count == 2 else {
                    query.append((name, nil))
                    continue
                }
                guard let value = PercentEncoding.decode(pair[1], plusIsBlank: true) else { return nil }
                query.append((name, value))
            }
        }
        self.raw = raw
        self.segments = segments
        self.query = query
    }

    /// The path as received, without the query.
    package var rawPath: Substring { raw.prefix { $0 != "?" } }

    /// The query as received, with its question mark; empty without one.
    package var rawQuery: Substring { raw.drop { $0 != "?" } }

    /// The first value of a parameter; names compare without case. A parameter without `=` reads as "".
    package func parameter(_ name: String) -> String? {
        query.first { ASCII.equalIgnoringCase($0.name.utf8, name.utf8) }.map { $0.value ?? "" }
    }

    package static func == (left: RequestTarget, right: RequestTarget) -> Bool { left.raw == right.raw }
}

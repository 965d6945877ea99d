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
        let bytes = raw.utf8
        guard bytes.first == UInt8(ascii: "/") else { return nil }
        let queryMark = bytes.firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        var segments: [String] = []
        for segment in bytes[..<queryMark].dropFirst()
            .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        {
            guard let decoded = PercentEncoding.decode(utf8: segment) else { return nil }
            segments.append(decoded)
        }
        if segments.last == "" { segments.removeLast() }
        var query: [(name: String, value: String?)] = []
        for parameter in bytes[queryMark...].dropFirst().split(separator: UInt8(ascii: "&")) {
            let equals = parameter.firstIndex(of: UInt8(ascii: "=")) ?? parameter.endIndex
            guard let name = PercentEncoding.decode(utf8: parameter[..<equals], plusIsBlank: true) else {
                return nil
            }
            guard equals < parameter.endIndex else {
                query.append((name, nil))
                continue
            }
            guard
                let value = PercentEncoding.decode(utf8: parameter[equals...].dropFirst(), plusIsBlank: true)
            else { return nil }
            query.append((name, value))
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

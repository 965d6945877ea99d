package import HTTPMessages

/// A request that is refused while it is read, with the status that says why.
package struct HTTPParseError: Error, Equatable {
    package let status: HTTPStatus
    package let reason: String

    init(_ status: HTTPStatus, _ reason: String) {
        self.status = status
        self.reason = reason
    }
}

/// How the body of a request is delimited (RFC 9112 section 6).
package enum BodyFraming: Equatable {
    case length(Int)
    case chunked
}

/// The strict reader of RFC 9112 heads. Values in, values out.
package struct HTTP1HeadParser {
    package struct Head: Equatable {
        package var request: HTTPRequestHead
        package var framing: BodyFraming
        package var keepsAlive: Bool
    }

    let limits: ServerLimits
    let scheme: String

    package init(limits: ServerLimits, scheme: String) {
        self.limits = limits
        self.scheme = scheme
    }

    /// The end of the head in `bytes`, behind its empty line; nil while it is incomplete.
    ///
    /// - Parameter scanned: Bytes known not to hold the end; updated, so that a slow head costs no rescans.
    package func endOfHead(in bytes: [UInt8], scanned: inout Int) throws(HTTPParseError) -> Int? {
        var index = scanned
        while index < bytes.count {
            if bytes[index] == 0x0A {
                guard index > 0, bytes[index - 1] == 0x0D else {
                    throw HTTPParseError(400, "a line feed without a carriage return")
                }
                if index >= 3, bytes[index - 2] == 0x0A, bytes[index - 3] == 0x0D {
                    guard index < limits.headByteCountMax else { break }
                    return index + 1
                }
            }
            index += 1
        }
        scanned = bytes.count
        guard bytes.count < limits.headByteCountMax else {
            throw HTTPParseError(431, "the head is longer than \(limits.headByteCountMax) bytes")
        }
        return nil
    }

    /// Reads a whole head, `bytes[..<end]` with its empty line.
    package func parse(_ bytes: ArraySlice<UInt8>) throws(HTTPParseError) -> Head {
        var position = bytes.startIndex
        let requestLine = try line(bytes, &position)
        let (method, rawTarget, version) = try parseRequestLine(requestLine)
        var fields: HTTPFields = [:]
        while true {
            let text = try line(bytes, &position)
            if text.isEmpty { break }
            guard fields.lines.count < limits.fieldCountMax else {
                throw HTTPParseError(431, "more than \(limits.fieldCountMax) header lines")
            }
            let (name, value) = try parseField(text)
            fields.append(name, value)
        }
        let hosts = fields.all("Host")
        guard hosts.count == 1 || (hosts.isEmpty && version == .http10) else {
            throw HTTPParseError(
                400,
                hosts.isEmpty ? "the Host header is missing" : "more than one Host header"
            )
        }
        var authority = hosts.first ?? ""
        guard authority.utf8.allSatisfy({ hostBytes[Int($0)] }) else {
            throw HTTPParseError(400, "the Host header is malformed")
        }
        let target = try parseTarget(rawTarget, method, &authority)
        let request = HTTPRequestHead(
            method: method,
            target: target,
            fields: fields,
            version: version,
            scheme: scheme,
            authority: authority
        )
        let closes = fields.has("close", in: "Connection")
        let keeps = version == .http11 ? !closes : !closes && fields.has("keep-alive", in: "Connection")
        return Head(request: request, framing: try framing(fields, version), keepsAlive: keeps)
    }

    /// A line without its CRLF. Bare LF and bare CR are refused (section 2.2): they are how requests are smuggled.
    private func line(
        _ bytes: ArraySlice<UInt8>,
        _ position: inout Int
    ) throws(HTTPParseError) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.endIndex {
            let byte = bytes[position]
            if byte == 0x0D {
                guard position + 1 < bytes.endIndex, bytes[position + 1] == 0x0A else {
                    throw HTTPParseError(400, "a carriage return without a line feed")
                }
                position += 2
                return bytes[start..<(position - 2)]
            }
            guard byte != 0x0A else { throw HTTPParseError(400, "a line feed without a carriage return") }
            position += 1
        }
        throw HTTPParseError(400, "the head ends inside a line")
    }

    private func parseRequestLine(
        _ line: ArraySlice<UInt8>
    ) throws(HTTPParseError) -> (method: String, target: String, version: HTTPRequestHead.Version) {
        let parts = line.split(separator: 0x20, maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].allSatisfy({ tokenBytes[Int($0)] }),
            parts[0].count <= 32
        else {
            throw HTTPParseError(400, "the request line is malformed")
        }
        guard parts[1].count <= limits.targetByteCountMax else {
            throw HTTPParseError(414, "the target is longer than \(limits.targetByteCountMax) bytes")
        }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw HTTPParseError(400, "the target holds a character that must be percent-encoded")
        }
        let version: HTTPRequestHead.Version
        switch String(decoding: parts[2], as: UTF8.self) {
        case "HTTP/1.1": version = .http11
        case "HTTP/1.0": version = .http10
        case let other where other.hasPrefix("HTTP/"):
            throw HTTPParseError(505, "the HTTP version is not supported")
        default: throw HTTPParseError(400, "the request line is malformed")
        }
        return (String(decoding: parts[0], as: UTF8.self), String(decoding: parts[1], as: UTF8.self), version)
    }

    /// Origin form, absolute form (whose authority wins, section 3.2.2), or `*` for OPTIONS.
    private func parseTarget(
        _ raw: String,
        _ method: String,
        _ authority: inout String
    ) throws(HTTPParseError) -> RequestTarget {
        var path = raw
        if raw == "*", method == "OPTIONS" { path = "/" }
        if raw.utf8.first != UInt8(ascii: "/"), let url = HTTPURL(raw) {
            authority = url.authority
            path = url.target
        }
        guard let target = RequestTarget(path) else {
            throw HTTPParseError(400, "the target is not a path, or holds a broken percent-encoding")
        }
        return target
    }

    private func parseField(_ line: ArraySlice<UInt8>) throws(HTTPParseError) -> (String, String) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            throw HTTPParseError(400, "a header line without a colon")
        }
        let name = line[..<colon]
        // This also refuses a folded line and a blank before the colon (section 5.1).
        guard !name.isEmpty, name.allSatisfy({ tokenBytes[Int($0)] }) else {
            throw HTTPParseError(400, "a header name is malformed")
        }
        var value = line[(colon + 1)...]
        while let first = value.first, first == 0x20 || first == 0x09 { value = value.dropFirst() }
        while let last = value.last, last == 0x20 || last == 0x09 { value = value.dropLast() }
        let nameText = String(decoding: name, as: UTF8.self)
        guard value.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 }) else {
            throw HTTPParseError(400, "the header \(nameText) holds a control character")
        }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw HTTPParseError(400, "the header \(nameText) is not UTF-8")
        }
        return (nameText, text)
    }

    private func framing(
        _ fields: HTTPFields,
        _ version: HTTPRequestHead.Version
    ) throws(HTTPParseError) -> BodyFraming {
        let encodings = fields.all("Transfer-Encoding")
        let lengths = fields.all("Content-Length")
        if let encoding = encodings.first {
            guard lengths.isEmpty else {
                throw HTTPParseError(400, "Content-Length together with Transfer-Encoding")
            }
            guard version == .http11 else { throw HTTPParseError(400, "Transfer-Encoding in HTTP/1.0") }
            guard encodings.count == 1, ASCII.equalIgnoringCase(encoding.utf8, "chunked".utf8) else {
                throw HTTPParseError(501, "the only transfer coding is chunked")
            }
            return .chunked
        }
        guard let length = lengths.first else { return .length(0) }
        guard lengths.count == 1, !length.isEmpty, length.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else {
            throw HTTPParseError(400, "Content-Length is not one decimal number")
        }
        guard let count = Int(length) else { throw HTTPParseError(400, "Content-Length is beyond 64 bits") }
        return .length(count)
    }
}

/// The characters of a token (RFC 9110 section 5.6.2).
private let tokenBytes: [Bool] = (0..<256).map { byte in
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8.contains(UInt8(byte))
}

/// The characters of a host with its port.
private let hostBytes: [Bool] = (0..<256).map { byte in
    "-._~:[]0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%!$&'()*+,;=".utf8.contains(
        UInt8(byte)
    )
}

/// Floods that brought HTTP/2 servers down, each fifty thousand times, as the bytes of one connection.
package enum HTTP2Flood: String, Sendable, CaseIterable {
    case rapidReset = "HEADERS and RST_STREAM (CVE-2023-44487)"
    case continuations = "CONTINUATION without end (CVE-2024-28182)"
    case pings = "PING without end"
    case settings = "SETTINGS without end"

    package static let count = 50_000
    package static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])
    /// GET / of authority a, without the dynamic table (RFC 7541 appendix A: 2, 6, 4, 1).
    package static let request: [UInt8] = [0x82, 0x86, 0x84, 0x01, 0x01, 0x61]

    package var bytes: [UInt8] {
        var bytes = Self.preface
        if self == .continuations { bytes += Self.frame(1, 0x1, 1, Self.request) }
        for index in 0..<Self.count {
            let stream = UInt32(index * 2 + 1)
            switch self {
            case .rapidReset:
                bytes += Self.frame(1, 0x5, stream, Self.request) + Self.frame(3, 0, stream, [0, 0, 0, 8])
            case .continuations: bytes += Self.frame(9, 0, 1, [0x00, 0x01, 0x78, 0x01, 0x79])
            case .pings: bytes += Self.frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0])
            case .settings: bytes += Self.frame(4, 0, 0, [])
            }
        }
        // GOAWAY of the client at the end, so that a server that answered everything closes as well.
        if self == .pings || self == .settings { bytes += Self.frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]) }
        return bytes
    }

    /// The start of a client that takes everything: SETTINGS_INITIAL_WINDOW_SIZE (4) and the connection's window at their most.
    package static let openWindows =
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [0, 4, 0x7F, 0xFF, 0xFF, 0xFF])
        + frame(8, 0, 0, [0x7F, 0xFE, 0, 0])

    /// GET of a path of up to 126 bytes, END_STREAM and END_HEADERS set (literal `:path`, RFC 7541 section 6.2.2).
    package static func get(_ path: String, stream: UInt32) -> [UInt8] {
        let literal = [0x04, UInt8(truncatingIfNeeded: path.utf8.count)] + Array(path.utf8)
        return frame(1, 0x5, stream, [0x82, 0x86] + literal + [0x01, 0x01, 0x61])
    }

    /// POST of a short path with a declared length (static name 28, RFC 7541 section 6.2.2); its body is still to come.
    package static func post(_ path: String, stream: UInt32, length: Int) -> [UInt8] {
        func text(_ value: String) -> [UInt8] { [UInt8(value.utf8.count & 0x7F)] + Array(value.utf8) }
        let fields = [0x83, 0x86, 0x04] + text(path) + [0x01, 0x01, 0x61, 0x0F, 0x0D] + text(String(length))
        return frame(1, 0x4, stream, fields)
    }

    /// Type and payload of each whole frame.
    package static func frames(_ bytes: [UInt8]) -> [(type: UInt8, payload: [UInt8])] {
        var frames: [(type: UInt8, payload: [UInt8])] = []
        var rest = bytes[...]
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard rest.count >= 9 + length else { break }
            frames.append((head[3], Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }

    /// RFC 9113 section 4.1.
    package static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8]
    {
        let length = payload.count
        var bytes = [
            UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags,
        ]
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: stream >> UInt32(shift))) }
        return bytes + payload
    }

    /// True when the last whole frame of an answer is GOAWAY.
    package static func endsInGoAway(_ answer: [UInt8]) -> Bool { frames(answer).last?.type == 7 }
}

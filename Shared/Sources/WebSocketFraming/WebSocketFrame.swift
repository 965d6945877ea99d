/// The frame types of RFC 6455 section 5.2.
package enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10

    var isControl: Bool { rawValue >= 8 }
}

/// What arrived: fragments are joined, masks removed.
package enum WebSocketEvent: Equatable, Sendable {
    case text(String)
    case binary([UInt8])
    case ping([UInt8])
    case pong([UInt8])
    /// `code` is 1005 when the frame held none (RFC 6455 section 7.1.5).
    case close(code: UInt16, reason: String)
}

/// A violation, with the close code that answers it (RFC 6455 section 7.4.1).
package struct WebSocketError: Error, Equatable, Sendable {
    package let closeCode: UInt16
    package let reason: String
}

package enum WebSocketRole: Sendable { case server, client }

package enum WebSocketEncoder {
    /// One whole frame. A client masks with `mask`, four random bytes that no attacker can foresee
    /// (RFC 6455 section 5.3); a server sends plain frames, so one buffer serves many connections.
    package static func frame(_ opcode: WebSocketOpcode, _ payload: [UInt8], mask: [UInt8]? = nil) -> [UInt8]
    {
        var frame: [UInt8] = []
        frame.reserveCapacity(payload.count + 14)
        frame.append(0x80 | opcode.rawValue)
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        switch payload.count {
        case ..<126: frame.append(maskBit | UInt8(payload.count))
        case ..<65536: frame += [maskBit | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default:
            frame.append(maskBit | 127)
            for shift in stride(from: 56, through: 0, by: -8) {
                frame.append(UInt8(payload.count >> shift & 255))
            }
        }
        guard let mask else { return frame + payload }
        precondition(mask.count == 4, "a mask has four bytes")
        frame += mask
        for (index, byte) in payload.enumerated() { frame.append(byte ^ mask[index & 3]) }
        return frame
    }

    package static func close(_ code: UInt16, _ reason: String, mask: [UInt8]? = nil) -> [UInt8] {
        // A control frame holds 125 bytes, two of them the code.
        var text = reason
        while text.utf8.count > 123 { text.removeLast() }
        return frame(.close, [UInt8(code >> 8), UInt8(code & 255)] + Array(text.utf8), mask: mask)
    }
}

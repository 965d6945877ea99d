/// Base64 and base64url (RFC 4648 sections 4 and 5).
package enum Base64 {
    private static let standard = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8
    )
    private static let url = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The standard alphabet with padding.
    package static func encode(_ bytes: [UInt8]) -> String { encode(bytes, standard, pads: true) }

    /// The URL-safe alphabet without padding.
    package static func encodeURL(_ bytes: [UInt8]) -> String { encode(bytes, url, pads: false) }

    /// Reads either alphabet, with or without padding. Blanks and line ends are skipped only when asked
    /// for. Nil for any other character, for a lone last character and for wrong padding.
    package static func decode(_ text: some StringProtocol, skipsBlanks: Bool = false) -> [UInt8]? {
        var result: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        var padding = 0
        for byte in text.utf8 {
            let value: UInt32
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = UInt32(byte - UInt8(ascii: "A"))
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = UInt32(byte - UInt8(ascii: "a")) + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = UInt32(byte - UInt8(ascii: "0")) + 52
            case UInt8(ascii: "+"), UInt8(ascii: "-"): value = 62
            case UInt8(ascii: "/"), UInt8(ascii: "_"): value = 63
            case UInt8(ascii: "="):
                padding += 1
                continue
            case 0x20, 0x09, 0x0A, 0x0D:
                guard skipsBlanks else { return nil }
                continue
            default: return nil
            }
            guard padding == 0 else { return nil }
            bits = bits << 6 | value
            count += 1
            if count % 4 == 0 {
                result += [
                    UInt8(truncatingIfNeeded: bits >> 16), UInt8(truncatingIfNeeded: bits >> 8),
                    UInt8(truncatingIfNeeded: bits),
                ]
                bits = 0
            }
        }
        switch count % 4 {
        case 0: guard padding == 0 else { return nil }
        case 2:
            guard padding == 0 || padding == 2 else { return nil }
            result.append(UInt8(truncatingIfNeeded: bits >> 4))
        case 3:
            guard padding <= 1 else { return nil }
            result += [UInt8(truncatingIfNeeded: bits >> 10), UInt8(truncatingIfNeeded: bits >> 2)]
        default: return nil
        }
        return result
    }

    private static func encode(_ bytes: [UInt8], _ alphabet: [UInt8], pads: Bool) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let left = min(3, bytes.count - index)
            var bits = UInt32(bytes[index]) << 16
            if left > 1 { bits |= UInt32(bytes[index + 1]) << 8 }
            if left > 2 { bits |= UInt32(bytes[index + 2]) }
            for position in 0...left { text.append(alphabet[Int(bits >> (18 - 6 * UInt32(position)) & 63)]) }
            if pads, left < 3 { text += [UInt8](repeating: UInt8(ascii: "="), count: 3 - left) }
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }
}

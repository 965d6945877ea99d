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
        // Text of Swift's own lies in one piece; a bridged one does not.
        let decoded = text.utf8.withContiguousStorageIfAvailable { decode($0, skipsBlanks: skipsBlanks) }
        return decoded ?? Array(text.utf8).withUnsafeBufferPointer { decode($0, skipsBlanks: skipsBlanks) }
    }

    private static let blank: UInt8 = 64, pad: UInt8 = 65, bad: UInt8 = 66

    /// What each byte is worth, or one of the three above.
    private static let values: [UInt8] = (0...255).map { byte in
        switch UInt8(byte) {
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        case UInt8(ascii: "="): pad
        case 0x20, 0x09, 0x0A, 0x0D: blank
        default: standard.firstIndex(of: UInt8(byte)).map { UInt8($0) } ?? bad
        }
    }

    private static func decode(_ text: UnsafeBufferPointer<UInt8>, skipsBlanks: Bool) -> [UInt8]? {
        var isGood = true
        let result = values.withUnsafeBufferPointer { values in
            [UInt8](unsafeUninitializedCapacity: text.count / 4 * 3 + 3) { output, outputCount in
                var bits: UInt32 = 0
                var count = 0
                var padding = 0
                func write(_ byte: UInt32) {
                    output[outputCount] = UInt8(truncatingIfNeeded: byte)
                    outputCount += 1
                }
                for byte in text {
                    let value = values[Int(byte)]
                    if value < 64, padding == 0 {
                        bits = bits << 6 | UInt32(value)
                        count += 1
                        if count % 4 == 0 {
                            write(bits >> 16)
                            write(bits >> 8)
                            write(bits)
                        }
                    } else if value == pad {
                        padding += 1
                    } else if value != blank || !skipsBlanks {
                        return isGood = false
                    }
                }
                switch count % 4 {
                case 0: isGood = padding == 0
                case 2:
                    isGood = padding == 0 || padding == 2
                    write(bits >> 4)
                case 3:
                    isGood = padding <= 1
                    write(bits >> 10)
                    write(bits >> 2)
                default: isGood = false
                }
            }
        }
        return isGood ? result : nil
    }

    private static func encode(_ bytes: [UInt8], _ alphabet: [UInt8], pads: Bool) -> String {
        let (whole, left) = bytes.count.quotientAndRemainder(dividingBy: 3)
        return String(unsafeUninitializedCapacity: (whole + 1) * 4) { output in
            var count = 0
            func write(_ bits: UInt32, _ characters: Int) {
                for position in 0..<characters {
                    output[count] = alphabet[Int(bits >> (18 - 6 * UInt32(position)) & 63)]
                    count += 1
                }
            }
            for index in stride(from: 0, to: whole * 3, by: 3) {
                write(
                    UInt32(bytes[index]) << 16 | UInt32(bytes[index + 1]) << 8 | UInt32(bytes[index + 2]),
                    4
                )
            }
            if left > 0 {
                let second = left == 2 ? UInt32(bytes[whole * 3 + 1]) << 8 : 0
                write(UInt32(bytes[whole * 3]) << 16 | second, left + 1)
            }
            while pads, left > 0, count % 4 != 0 {
                output[count] = UInt8(ascii: "=")
                count += 1
            }
            return count
        }
    }
}

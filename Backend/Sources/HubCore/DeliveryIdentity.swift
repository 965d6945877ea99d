package import TidingsModels

/// The id under which one target of one send is delivered, the same at each try: platforms and devices drop repeats
/// by it.
package enum DeliveryIdentity {
    /// A UUID in lower case: the 128 random bits of the notification id, mixed with the registration.
    package static func id(_ notification: NotificationID, _ registration: RegistrationID) -> String {
        let digits = notification.text.utf8.prefix(32)
        var high = UInt64(String(decoding: digits.prefix(16), as: UTF8.self), radix: 16) ?? 0
        var low = UInt64(String(decoding: digits.dropFirst(16), as: UTF8.self), radix: 16) ?? 0
        for byte in registration.text.utf8 {
            // FNV-1a steps on both halves; the notification's randomness keeps ids of different sends apart.
            high = (high ^ UInt64(byte)) &* 0x100_0000_01B3
            low = (low ^ UInt64(byte) &+ 0x9E37_79B9_7F4A_7C15) &* 0x100_0000_01B3
        }
        // Version 8 and the RFC's variant (RFC 9562 section 5.8).
        high = high & ~0xF000 | 0x8000
        low = low & ~(0b11 << 62) | (0b10 << 62)
        let text = hex(high) + hex(low)
        let parts = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { range in
            String(decoding: Array(text.utf8)[range], as: UTF8.self)
        }
        return parts.joined(separator: "-")
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

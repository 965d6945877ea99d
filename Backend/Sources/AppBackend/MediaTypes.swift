import HTTPMessages

/// The uploads that a rich push may carry: the declared type must be one of these and be what the bytes begin like.
enum MediaTypes {
    private static let signatures: [(type: String, matches: @Sendable ([UInt8]) -> Bool)] = [
        ("image/png", { $0.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) }),
        ("image/jpeg", { $0.starts(with: [0xFF, 0xD8, 0xFF]) }),
        ("image/gif", { $0.starts(with: "GIF87a".utf8) || $0.starts(with: "GIF89a".utf8) }),
        ("image/webp", { $0.starts(with: "RIFF".utf8) && $0.dropFirst(8).starts(with: "WEBP".utf8) }),
        (
            "audio/mpeg",
            { $0.starts(with: "ID3".utf8) || ($0.first == 0xFF && $0.count > 1 && $0[1] & 0xE0 == 0xE0) }
        ),
        ("audio/ogg", { $0.starts(with: "OggS".utf8) }),
        ("audio/wav", { $0.starts(with: "RIFF".utf8) && $0.dropFirst(8).starts(with: "WAVE".utf8) }),
    ]

    /// Bytes that ``isPlausible(_:beginning:)`` needs.
    static let beginningByteCount = 16

    /// The bare type in lower case; nil for one that is not taken.
    static func known(_ contentType: String) -> String? {
        let bare = ASCII.trimmed(contentType.prefix { $0 != ";" }).lowercased()
        let type =
            [
                "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "image/jpg": "image/jpeg",
                "audio/mp3": "audio/mpeg",
            ][bare] ?? bare
        return signatures.contains { $0.type == type } ? type : nil
    }

    static func isPlausible(_ type: String, beginning: [UInt8]) -> Bool {
        signatures.first { $0.type == type }?.matches(beginning) ?? false
    }

    static var list: String { signatures.map(\.type).joined(separator: ", ") }

    /// The tutorials' word for what the content is.
    static func richType(_ type: String) -> String { type.hasPrefix("image/") ? "img" : "sound" }
}

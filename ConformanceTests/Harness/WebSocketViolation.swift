/// Client bytes that RFC 6455 section 5 forbids, with the close code that answers them, and a twin that is allowed.
package struct WebSocketViolation: Sendable {
    package let rule: String
    package let bytes: [UInt8]
    package let closeCode: UInt16
    package let twin: [UInt8]

    private init(_ rule: String, _ bytes: [UInt8], _ closeCode: UInt16, twin: [UInt8]) {
        self.rule = rule
        self.bytes = bytes
        self.closeCode = closeCode
        self.twin = twin
    }

    /// A frame under the mask 0, which leaves the payload readable here.
    private static func frame(_ first: UInt8, _ payload: [UInt8], length: [UInt8]? = nil) -> [UInt8] {
        let length =
            length
            ?? (payload.count < 126
                ? [UInt8(payload.count)] : [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)])
        return [first, 0x80 | length[0]] + length.dropFirst() + [0, 0, 0, 0] + payload
    }

    private static let text = Array("{}".utf8)
    private static let ping = frame(0x89, [1])

    package static let table: [WebSocketViolation] = [
        .init("5.1 a client's frame without a mask", [0x81, 0x02] + text, 1002, twin: frame(0x81, text)),
        .init("5.2 RSV1 without an extension", frame(0xC1, text), 1002, twin: frame(0x81, text)),
        .init("5.2 RSV2", frame(0xA1, text), 1002, twin: frame(0x81, text)),
        .init("5.2 RSV3", frame(0x91, text), 1002, twin: frame(0x81, text)),
        .init("5.2 a reserved data opcode (3)", frame(0x83, text), 1002, twin: frame(0x81, text)),
        .init("5.2 a reserved control opcode (11)", frame(0x8B, text), 1002, twin: frame(0x8A, text)),
        .init(
            "5.2 sixteen bits for a length below 126",
            frame(0x81, text, length: [126, 0, 2]),
            1002,
            twin: frame(0x81, Array(repeating: 0x20, count: 126) + text)
        ),
        .init(
            "5.2 sixty-four bits for a length below 65536",
            frame(0x81, text, length: [127, 0, 0, 0, 0, 0, 0, 0, 2]),
            1002,
            twin: frame(0x81, text)
        ),
        .init(
            "5.2 a length whose highest bit is set",
            frame(0x81, text, length: [127, 0x80, 0, 0, 0, 0, 0, 0, 2]),
            1002,
            twin: frame(0x81, text)
        ),
        .init(
            "5.4 a continuation without a message",
            frame(0x80, text),
            1002,
            twin: frame(0x01, [0x7B]) + frame(0x80, [0x7D])
        ),
        .init(
            "5.4 a message inside another",
            frame(0x01, text) + frame(0x81, text),
            1002,
            twin: frame(0x01, [0x7B]) + ping + frame(0x80, [0x7D])
        ),
        .init("5.5 a control frame in fragments", frame(0x09, [1]), 1002, twin: ping),
        .init(
            "5.5 a control frame of 126 bytes",
            frame(0x89, Array(repeating: 1, count: 126)),
            1002,
            twin: frame(0x89, Array(repeating: 1, count: 125))
        ),
        .init("5.5.1 a close frame with one byte", frame(0x88, [3]), 1002, twin: frame(0x88, [3, 0xE8])),
        .init(
            "7.4.1 the close code 1005 on the wire",
            frame(0x88, [0x03, 0xED]),
            1002,
            twin: frame(0x88, [0x03, 0xE9])
        ),
        .init("7.4.2 the close code 999", frame(0x88, [0x03, 0xE7]), 1002, twin: frame(0x88, [0x0B, 0xB8])),
        .init(
            "5.5.1 a close reason that is not UTF-8",
            frame(0x88, [0x03, 0xE8, 0xFF]),
            1007,
            twin: frame(0x88, [0x03, 0xE8, 0x41])
        ),
        .init("5.6 text that is not UTF-8", frame(0x81, [0xFF, 0xFE]), 1007, twin: frame(0x81, text)),
        .init(
            "8.1 UTF-8 cut off at the end of a message",
            frame(0x01, [0x22, 0xC3]) + frame(0x80, [0x22]),
            1007,
            twin: frame(0x01, [0x7B, 0x20]) + frame(0x80, [0x7D])
        ),
        .init(
            "10.4 a message longer than the limit",
            frame(0x81, [], length: [127, 0, 0, 0, 0, 0, 0x10, 0, 0]),
            1009,
            twin: frame(0x81, text)
        ),
    ]
}

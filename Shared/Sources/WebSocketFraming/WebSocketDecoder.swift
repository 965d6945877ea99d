/// Cuts a byte stream into messages (RFC 6455 section 5). Values in, events out; no I/O.
package struct WebSocketDecoder: Sendable {
    private let role: WebSocketRole
    private let messageByteCountMax: Int
    /// Bytes of an unfinished frame.
    private var input: [UInt8] = []
    /// The message whose fragments are arriving.
    private var message: (opcode: WebSocketOpcode, bytes: [UInt8])?
    private var sawClose = false

    /// - Parameter role: Who reads: a server demands masks, a client refuses them.
    package init(role: WebSocketRole, messageByteCountMax: Int) {
        self.role = role
        self.messageByteCountMax = messageByteCountMax
    }

    /// True between messages, when nothing is buffered.
    package var isIdle: Bool { input.isEmpty && message == nil }

    /// Takes bytes and returns the events they complete.
    package mutating func receive(_ bytes: Span<UInt8>) throws(WebSocketError) -> [WebSocketEvent] {
        input.reserveCapacity(input.count + bytes.count)
        bytes.withUnsafeBufferPointer { input.append(contentsOf: $0) }
        var events: [WebSocketEvent] = []
        var position = 0
        while !sawClose, let event = try nextFrame(&position) {
            if case .message(let whole) = event { events.append(whole) }
        }
        if position == input.count { input = [] } else { input.removeFirst(position) }
        return events
    }

    private enum Step {
        case message(WebSocketEvent)
        case fragment
    }

    private func violation(_ reason: String, code: UInt16 = 1002) -> WebSocketError {
        WebSocketError(closeCode: code, reason: reason)
    }

    private mutating func nextFrame(_ position: inout Int) throws(WebSocketError) -> Step? {
        let left = input.count - position
        guard left >= 2 else { return nil }
        let first = input[position]
        let second = input[position + 1]
        guard first & 0x70 == 0 else { throw violation("a reserved bit is set") }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
            throw violation("unknown opcode \(first & 0x0F)")
        }
        let isFinal = first & 0x80 != 0
        let isMasked = second & 0x80 != 0
        guard isMasked == (role == .server) else {
            throw violation(isMasked ? "a server's frame is masked" : "a client's frame is not masked")
        }
        var length = Int(second & 0x7F)
        var headCount = 2
        if opcode.isControl {
            guard isFinal else { throw violation("a control frame is fragmented") }
            guard length <= 125 else { throw violation("a control frame is longer than 125 bytes") }
        }
        if length == 126 {
            guard left >= 4 else { return nil }
            length = Int(input[position + 2]) << 8 | Int(input[position + 3])
            headCount = 4
            guard length >= 126 else { throw violation("the length is not in its shortest form") }
        } else if length == 127 {
            guard left >= 10 else { return nil }
            guard input[position + 2] & 0x80 == 0 else {
                throw violation("the length has its highest bit set")
            }
            length = 0
            for index in 2..<10 { length = length << 8 | Int(input[position + index]) }
            headCount = 10
            guard length >= 65536 else { throw violation("the length is not in its shortest form") }
        }
        let soFar = message?.bytes.count ?? 0
        guard length <= messageByteCountMax, opcode.isControl || soFar + length <= messageByteCountMax else {
            throw violation("a message is longer than \(messageByteCountMax) bytes", code: 1009)
        }
        let payloadStart = position + headCount + (isMasked ? 4 : 0)
        guard input.count - payloadStart >= length else { return nil }
        var payload = Array(input[payloadStart..<(payloadStart + length)])
        if isMasked {
            let mask = Array(input[(payloadStart - 4)..<payloadStart])
            for index in payload.indices { payload[index] ^= mask[index & 3] }
        }
        position = payloadStart + length
        return try take(opcode, payload, isFinal: isFinal)
    }

    private mutating func take(
        _ opcode: WebSocketOpcode,
        _ payload: [UInt8],
        isFinal: Bool
    ) throws(WebSocketError) -> Step {
        switch opcode {
        case .ping: return .message(.ping(payload))
        case .pong: return .message(.pong(payload))
        case .close: return .message(try closeEvent(payload))
        case .text, .binary:
            guard message == nil else { throw violation("a new message begins inside another") }
            message = (opcode, payload)
        case .continuation:
            guard message != nil else { throw violation("a continuation without a message") }
            message?.bytes += payload
        }
        guard isFinal, let whole = message else { return .fragment }
        message = nil
        guard whole.opcode == .text else { return .message(.binary(whole.bytes)) }
        guard let text = String(validating: whole.bytes, as: UTF8.self) else {
            throw violation("a text message is not UTF-8", code: 1007)
        }
        return .message(.text(text))
    }

    private mutating func closeEvent(_ payload: [UInt8]) throws(WebSocketError) -> WebSocketEvent {
        sawClose = true
        if payload.isEmpty { return .close(code: 1005, reason: "") }
        guard payload.count >= 2 else { throw violation("a close frame with one byte") }
        let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
        let isLegal =
            (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
        guard isLegal else { throw violation("the close code \(code) is not allowed on the wire") }
        guard let reason = String(validating: payload[2...], as: UTF8.self) else {
            throw violation("a close reason is not UTF-8", code: 1007)
        }
        return .close(code: code, reason: reason)
    }
}

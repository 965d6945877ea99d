import HTTPMessages
import HTTPServing
import WebSocketFraming

extension FuzzTarget {
    /// Heads: the answer does not depend on how the bytes arrive, and nothing that could split a message gets through.
    static let http1Head = FuzzTarget(name: "http1-head") { input in
        let parser = HTTP1HeadParser(limits: ServerLimits(), scheme: "http")
        let whole = Reading { try head(input, parser, step: max(1, input.count)) }
        let inDrops = Reading { try head(input, parser, step: 1) }
        guard whole == inDrops else { return "at once: \(whole); in drops: \(inDrops)" }
        guard case .taken(let found?) = whole else { return nil }
        for line in found.request.fields.lines
        where (line.name + line.value).utf8.contains(where: { $0 == 0x0D || $0 == 0x0A || $0 == 0 }) {
            return "a field holds a line end or NUL"
        }
        if found.framing == .chunked, found.request.fields["Content-Length"] != nil {
            return "both framings were taken"
        }
        // Written plainly it is the same request.
        let version = found.request.version == .http10 ? "HTTP/1.0" : "HTTP/1.1"
        let text =
            "\(found.request.method) \(found.request.target.raw) \(version)\r\n"
            + found.request.fields.lines.map { "\($0.name): \($0.value)\r\n" }.joined() + "\r\n"
        var plain = found
        plain.request.authority = found.request.fields["Host"] ?? ""
        // An absolute target was cut to its path, which may be longer than it by the slash.
        return unchanged(plain, text) { try parser.parse(Array(text.utf8)[...]) }
    }

    private static func head(
        _ input: [UInt8],
        _ parser: HTTP1HeadParser,
        step: Int
    ) throws -> HTTP1HeadParser.Head? {
        var bytes: [UInt8] = []
        var scanned = 0
        for start in stride(from: 0, to: input.count, by: step) {
            bytes += input[start..<min(start + step, input.count)]
            if let end = try parser.endOfHead(in: bytes, scanned: &scanned) {
                return try parser.parse(bytes[..<end])
            }
        }
        return nil
    }

    /// Chunked bodies: the same bytes, or the same refusal, however they arrive.
    static let http1Chunked = FuzzTarget(name: "http1-chunked") { input in
        let whole = chunks(input, step: max(1, input.count))
        for step in [1, 7] {
            let pieces = chunks(input, step: step)
            if pieces != whole { return "at once: \(whole); \(step) at a time: \(pieces)" }
        }
        return nil
    }

    private struct Chunks: Equatable {
        var body: [UInt8] = []
        var taken = 0
        var isFinished = false
        var refusal: String?
    }

    private static func chunks(_ input: [UInt8], step: Int) -> Chunks {
        var decoder = ChunkedDecoder(limits: ServerLimits())
        var result = Chunks()
        for start in stride(from: 0, to: input.count, by: step) where !decoder.isFinished {
            do {
                result.taken += try decoder.decode(
                    input[start..<min(start + step, input.count)],
                    into: &result.body
                )
            } catch {
                // How far it came is not part of the answer.
                return Chunks(refusal: "\(error)")
            }
        }
        result.isFinished = decoder.isFinished
        return result
    }

    /// WebSocket frames, first byte odd: as a server reads them. Whole events are the same however they arrive, and are read
    /// again as they are written.
    static let webSocket = FuzzTarget(name: "websocket") { input in
        guard let first = input.first else { return nil }
        let role: WebSocketRole = first & 1 == 1 ? .server : .client
        let frames = Array(input.dropFirst())
        let whole = Reading { try events(frames, role, step: max(1, frames.count)) }
        for step in [1, 5] {
            let pieces = Reading { try events(frames, role, step: step) }
            if pieces != whole { return "at once: \(whole); \(step) at a time: \(pieces)" }
        }
        guard case .taken(let found) = whole else { return nil }
        let mask: [UInt8]? = role == .server ? [1, 2, 3, 4] : nil
        let written = found.flatMap { event in
            switch event {
            case .text(let text): WebSocketEncoder.frame(.text, Array(text.utf8), mask: mask)
            case .binary(let bytes): WebSocketEncoder.frame(.binary, bytes, mask: mask)
            case .ping(let bytes): WebSocketEncoder.frame(.ping, bytes, mask: mask)
            case .pong(let bytes): WebSocketEncoder.frame(.pong, bytes, mask: mask)
            case .close(1005, _): WebSocketEncoder.frame(.close, [], mask: mask)
            case .close(let code, let reason): WebSocketEncoder.close(code, reason, mask: mask)
            }
        }
        return unchanged(found, "\(written)") { try events(written, role, step: max(1, written.count)) }
    }

    private static func events(
        _ input: [UInt8],
        _ role: WebSocketRole,
        step: Int
    ) throws -> [WebSocketEvent] {
        var decoder = WebSocketDecoder(role: role, messageByteCountMax: 4096)
        var events: [WebSocketEvent] = []
        for start in stride(from: 0, to: input.count, by: step) {
            events += try decoder.receive(Array(input[start..<min(start + step, input.count)]).span)
        }
        return events
    }

    /// URLs and targets: a host is a name or an address, and what is printed is the same URL.
    static let url = FuzzTarget(name: "url") { input in
        let text = String(decoding: input, as: UTF8.self)
        if let target = RequestTarget(text) {
            for segment in target.segments
            where PercentEncoding.decode(PercentEncoding.encode(segment)) != segment {
                return "the segment '\(segment)' does not survive its encoding"
            }
        }
        guard let url = HTTPURL(text) else { return nil }
        let isName = url.host.utf8.allSatisfy {
            (0x30...0x39).contains($0) || (0x61...0x7A).contains($0) || "-._".utf8.contains($0)
        }
        let isAddress =
            url.host.contains(":") && url.host.utf8.allSatisfy { "0123456789abcdef:.".utf8.contains($0) }
        guard isName || isAddress else { return "the host '\(url.host)' is neither a name nor an address" }
        return HTTPURL(url.description) == url ? nil : "'\(url.description)' is another URL"
    }
}

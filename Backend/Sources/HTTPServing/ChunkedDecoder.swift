import HTTPMessages

/// Reads a chunked body (RFC 9112 section 7.1), as strictly as the head. Trailer fields are checked for form and
/// dropped.
package struct ChunkedDecoder {
    private enum State: Equatable {
        case size
        case data(Int)
        case dataEnd
        case trailer
        case finished
    }

    private var state = State.size
    private var line: [UInt8] = []
    private var trailerByteCount = 0
    private let lineByteCountMax: Int

    package init(limits: ServerLimits) { lineByteCountMax = limits.chunkLineByteCountMax }

    package var isFinished: Bool { state == .finished }

    /// Takes bytes from `input` and appends body bytes to `output`; returns how many were taken.
    package mutating func decode(
        _ input: ArraySlice<UInt8>,
        into output: inout [UInt8]
    ) throws(HTTPParseError) -> Int {
        var position = input.startIndex
        while position < input.endIndex, state != .finished {
            switch state {
            case .data(let left):
                let count = min(left, input.endIndex - position)
                output += input[position..<(position + count)]
                position += count
                state = count == left ? .dataEnd : .data(left - count)
            case .size, .dataEnd, .trailer:
                let byte = input[position]
                position += 1
                line.append(byte)
                guard line.count <= lineByteCountMax else {
                    throw HTTPParseError(400, "a chunk line is too long")
                }
                if byte == 0x0A { try endLine() }
            case .finished: break
            }
        }
        return position - input.startIndex
    }

    private mutating func endLine() throws(HTTPParseError) {
        guard line.count >= 2, line[line.count - 2] == 0x0D else {
            throw HTTPParseError(400, "a line feed without a carriage return in a chunked body")
        }
        line.removeLast(2)
        guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            throw HTTPParseError(400, "a control character in a chunk line")
        }
        defer { line.removeAll(keepingCapacity: true) }
        switch state {
        case .size:
            let count = try parseSize()
            state = count == 0 ? .trailer : .data(count)
        case .dataEnd:
            guard line.isEmpty else { throw HTTPParseError(400, "chunk data is not followed by a line end") }
            state = .size
        case .trailer:
            trailerByteCount += line.count
            guard trailerByteCount <= lineByteCountMax else {
                throw HTTPParseError(431, "the trailer section is too long")
            }
            if line.isEmpty { state = .finished }
        case .data, .finished: break
        }
    }

    private func parseSize() throws(HTTPParseError) -> Int {
        let digits = line.prefix { hexValue($0) != nil }
        let rest = line[digits.count...]
        guard !digits.isEmpty, digits.count <= 15, rest.isEmpty || rest.first == UInt8(ascii: ";") else {
            throw HTTPParseError(400, "the chunk size is not a hexadecimal number")
        }
        return digits.reduce(0) { $0 << 4 | Int(hexValue($1) ?? 0) }
    }

    private func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

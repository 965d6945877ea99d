import HTTPMessages

/// One request and its response on an HTTP/2 connection. Loop-confined; `@unchecked Sendable` lets a task carry it.
final class HTTP2Stream: @unchecked Sendable {
    let id: Int32
    let body: RequestBody
    private(set) var method = ""
    private var path = ""
    private var authority = ""
    private var fields: HTTPFields = [:]
    private var fieldByteCount = 0
    private var refusal: HTTPParseError?
    var isHeadComplete = false
    var isAnswered = false
    var isClosed = false
    var mustContinue = false
    /// The request is here to its end.
    var isInputEnded = false
    /// Body bytes that came after the answer.
    var discardedByteCount = 0
    /// An answer that waits for the end of the request.
    var held: HTTPResponse?
    /// Body bytes that flow control still counts as ours.
    var unconsumed = 0

    var output: [UInt8] = []
    var outputStart = 0
    var ahead: [UInt8]?
    var isOutputComplete = false
    var nextPiece: (@Sendable () async throws -> [UInt8]?)?
    var isFetching = false

    init(id: Int32, onDemand: @escaping @Sendable () -> Void) {
        self.id = id
        body = RequestBody(declaredByteCount: nil, onDemand: onDemand)
    }

    func add(_ name: String, _ value: String, limits: ServerLimits) {
        fieldByteCount += name.utf8.count + value.utf8.count + 32
        guard fieldByteCount <= limits.headByteCountMax, fields.lines.count < limits.fieldCountMax else {
            refusal = refusal ?? HTTPParseError(431, "the header fields are too many or too long")
            return
        }
        switch name {
        case ":method": method = value
        case ":path": path = value
        case ":authority": authority = value
        case ":scheme": break
        default:
            if name == "expect", ASCII.equalIgnoringCase(value.utf8, "100-continue".utf8) {
                mustContinue = true
            }
            if name == "host", authority.isEmpty { authority = value }
            fields.append(name, value)
        }
        if path.utf8.count > limits.targetByteCountMax {
            refusal =
                refusal ?? HTTPParseError(414, "the target is longer than \(limits.targetByteCountMax) bytes")
        }
    }

    func head(scheme: String) throws(HTTPParseError) -> HTTPRequestHead {
        if let refusal { throw refusal }
        guard let target = RequestTarget(path == "*" ? "/" : path) else {
            throw HTTPParseError(400, "the path is not in origin form, or holds a broken percent-encoding")
        }
        return HTTPRequestHead(
            method: method,
            target: target,
            fields: fields,
            version: .http2,
            scheme: scheme,
            authority: authority
        )
    }

    /// As declared; nil when it is not, or is no number.
    var contentLength: Int? { fields["content-length"].flatMap { Int($0) } }

    /// Moves the piece ahead into the output once the output is used up.
    func rotate() {
        if outputStart == output.count, let piece = ahead {
            output = piece
            outputStart = 0
            ahead = nil
        }
    }
}

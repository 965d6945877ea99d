import EventLoops
import HTTPMessages
import PushTelemetry
import TLSTransport

/// HTTP/1.1 on a connection: one request at a time; pipelined ones wait in the input. Loop-confined.
final class HTTP1Connection: @unchecked Sendable {
    private unowned let connection: ServerConnection
    private let stream: StreamConnection
    private let limits: ServerLimits
    private let parser: HTTP1HeadParser
    private var input: [UInt8] = []
    private var scanned = 0
    private var isDraining = false
    private var sawEnd = false
    private var isRefused = false
    /// Bytes of further requests that wait; then the socket is not read.
    private static let pipelinedByteCountMax = 64 << 10
    /// For a handler that has its whole request.
    private static let handlerTimeout = Duration.seconds(600)

    /// The request under way.
    private final class Current: @unchecked Sendable {
        let head: HTTP1HeadParser.Head
        let body: RequestBody
        var decoder: ChunkedDecoder?
        var bodyLeft: Int
        var isBodyComplete = false
        var isAnswered = false
        var isResponseComplete = false
        var mustContinue: Bool
        var discarded = 0

        init(_ head: HTTP1HeadParser.Head, body: RequestBody, limits: ServerLimits) {
            self.head = head
            self.body = body
            switch head.framing {
            case .length(let count): bodyLeft = count
            case .chunked:
                bodyLeft = 0
                decoder = ChunkedDecoder(limits: limits)
            }
            mustContinue =
                head.request.version == .http11 && head.request.fields.has("100-continue", in: "Expect")
        }
    }
    private var current: Current?

    init(_ connection: ServerConnection) {
        self.connection = connection
        stream = connection.stream
        limits = connection.context.limits
        parser = HTTP1HeadParser(limits: limits, scheme: connection.scheme)
    }

    func receive(_ bytes: Span<UInt8>) {
        guard !isRefused else { return }
        if input.isEmpty, current == nil { setDeadline(limits.headTimeout) }
        input.reserveCapacity(input.count + bytes.count)
        bytes.withUnsafeBufferPointer { input.append(contentsOf: $0) }
        advance()
    }

    func inputEnded() {
        sawEnd = true
        guard let current else { return stream.close(.ended) }
        if !current.isBodyComplete {
            current.body.fail()
            stream.close(.ended)
        }
        // Else the client shut down its half and still reads the answer.
    }

    func drained() {
        guard let current else { return }
        if current.isResponseComplete {
            if current.isBodyComplete { finish(current) }
        } else {
            streamPump?()
        }
    }

    func closed() {
        current?.body.fail()
        current = nil
        streamPump = nil
    }

    func drain() {
        isDraining = true
        if current == nil { stream.closeWhenDrained() }
    }

    private func setDeadline(_ timeout: Duration) {
        stream.deadline = stream.loop.nowMilliseconds + timeout.wholeMilliseconds
    }

    /// Reads as much of the input as it can.
    private func advance() {
        while !stream.isClosed {
            do throws(HTTPParseError) {
                if let current {
                    try feedBody(current)
                    guard current.isResponseComplete, current.isBodyComplete, stream.pendingByteCount == 0
                    else { break }
                    finish(current)
                    continue
                }
                try skipEmptyLines()
                guard !input.isEmpty, let end = try parser.endOfHead(in: input, scanned: &scanned) else {
                    break
                }
                let head = try parser.parse(input[..<end])
                input.removeFirst(end)
                scanned = 0
                begin(head)
            } catch {
                return refuse(error)
            }
        }
        updateReading()
    }

    /// A client may send an empty line before a request (RFC 9112 section 2.2).
    private func skipEmptyLines() throws(HTTPParseError) {
        var count = 0
        while count + 1 < input.count, input[count] == 0x0D, input[count + 1] == 0x0A { count += 2 }
        guard count <= 8 else { throw HTTPParseError(400, "empty lines before a request") }
        if count > 0 {
            input.removeFirst(count)
            scanned = 0
        }
    }

    /// Answers 408 when a request has begun and is not whole; false when there is nothing to answer.
    func refuseLate() -> Bool {
        guard !isRefused else { return false }
        let isPartial = current.map { !$0.isBodyComplete && !$0.isAnswered } ?? !input.isEmpty
        guard isPartial else { return false }
        refuse(HTTPParseError(408, "the request did not arrive in time"))
        return true
    }

    private func begin(_ head: HTTP1HeadParser.Head) {
        connection.context.events.counters.add("http_requests_total")
        let declared: Int? = if case .length(let count) = head.framing { count } else { nil }
        let body = RequestBody(declaredByteCount: declared) { [weak self, loop = stream.loop] in
            loop.execute { [weak self] in self?.bodyWanted() }
        }
        let request = Current(head, body: body, limits: limits)
        current = request
        setDeadline(limits.bodyTimeout)
        do throws(HTTPParseError) { try feedBody(request) } catch { return refuse(error) }
        if request.isBodyComplete {
            request.mustContinue = false
            setDeadline(Self.handlerTimeout)
        }
        connection.handle(HTTPRequest(head: head.request, body: body)) {
            [weak self, weak request, loop = stream.loop] response in
            guard loop.isCurrent else {
                loop.execute { [weak self, weak request] in
                    if let self, let request { self.respond(response, to: request) }
                }
                return
            }
            if let self, let request { self.respond(response, to: request) }
        }
    }

    /// Moves body bytes from the input to the handler.
    private func feedBody(_ current: Current) throws(HTTPParseError) {
        guard !current.isBodyComplete else { return }
        if current.decoder == nil, current.bodyLeft == 0 {
            current.isBodyComplete = true
            current.body.feed([], isLast: true)
            return
        }
        guard !input.isEmpty,
            current.isAnswered || current.body.bufferedByteCount < limits.bodyBufferByteCountMax
        else { return }
        var bytes: [UInt8] = []
        if current.decoder != nil {
            let taken = try current.decoder?.decode(input[...], into: &bytes) ?? 0
            input.removeFirst(taken)
            current.isBodyComplete = current.decoder?.isFinished ?? true
        } else {
            let count = min(current.bodyLeft, input.count)
            if count == input.count {
                bytes = input
                input = []
            } else {
                bytes = Array(input[..<count])
                input.removeFirst(count)
            }
            current.bodyLeft -= count
            current.isBodyComplete = current.bodyLeft == 0
        }
        if !current.isAnswered {
            setDeadline(current.isBodyComplete ? Self.handlerTimeout : limits.bodyTimeout)
        }
        if current.isAnswered {
            current.discarded += bytes.count
            if current.discarded > limits.discardByteCountMax { stream.closeLingering() }
        } else {
            current.body.feed(bytes, isLast: current.isBodyComplete)
        }
    }

    private func bodyWanted() {
        guard let current, !stream.isClosed else { return }
        if current.mustContinue, !current.isAnswered {
            current.mustContinue = false
            stream.write(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        }
        advance()
    }

    private func updateReading() {
        guard !isRefused else { return }
        let isFull =
            current.map { !$0.isAnswered && $0.body.bufferedByteCount >= limits.bodyBufferByteCountMax }
            ?? false
        stream.isReadingPaused = isFull || (current != nil && input.count > Self.pipelinedByteCountMax)
    }

    /// Answers a request that could not be read, and closes.
    private func refuse(_ error: HTTPParseError) {
        connection.context.events.refused(error.status.code, error.reason)
        if let current {
            current.body.fail()
            guard !current.isAnswered else { return stream.close(.failed(error.reason)) }
            current.isAnswered = true
        }
        let text = Array("\(error.status.reasonPhrase): \(error.reason).\n".utf8)
        var head = responseHead(
            HTTPResponse(error.status, ["Content-Type": "text/plain; charset=utf-8"]),
            keepsAlive: false
        )
        head += "Content-Length: \(text.count)\r\n\r\n".utf8
        stream.write(head + text)
        input = []
        isRefused = true
        stream.isReadingPaused = true
        setDeadline(limits.writeTimeout)
        stream.closeLingering()
    }

    /// Status line and fields, each with its line end; what delimits the body and the empty line follow.
    private func responseHead(_ response: HTTPResponse, keepsAlive: Bool) -> [UInt8] {
        var head: [UInt8] = []
        head.reserveCapacity(512)
        func append(_ name: String, _ value: String) {
            // A value with a line end would split the response; only our own bug could bring one here.
            precondition(
                !value.utf8.contains { $0 == 0x0D || $0 == 0x0A },
                "a line end in a response field"
            )
            head += name.utf8
            head += ": ".utf8
            head += value.utf8
            head += "\r\n".utf8
        }
        head += "HTTP/1.1 \(response.status.code) \(response.status.reasonPhrase)\r\n".utf8
        append("Date", connection.context.events.httpDate())
        for line in response.fields.lines { append(line.name, line.value) }
        if response.webSocket == nil, !keepsAlive { append("Connection", "close") }
        return head
    }

    private var streamPump: (() -> Void)?

    private func respond(_ response: HTTPResponse, to request: Current) {
        guard current === request, !request.isAnswered, !stream.isClosed else { return }
        request.isAnswered = true
        setDeadline(limits.writeTimeout)
        switch response.fault {
        case .hang: return setDeadline(Self.handlerTimeout)
        case .reset, .close: return stream.close(.failed("closed on demand"))
        case .goAway, .streamLimit, nil: break
        }
        if let acceptance = response.webSocket {
            stream.write(responseHead(response, keepsAlive: true) + "\r\n".utf8)
            let rest = input
            input = []
            current = nil
            connection.become(acceptance, rest: rest)
            return
        }
        // An unread body would have to be read before the next request; a client that waits for 100 Continue
        // may send it or not, so the connection cannot go on.
        let keepsAlive =
            request.head.keepsAlive && !isDraining && !request.mustContinue && !sawEnd
            && response.fault == nil
        let isHead = request.head.request.method == "HEAD"
        let bodyAllowed = !isHead && response.status.code != 204 && response.status.code != 304
        var head = responseHead(response, keepsAlive: keepsAlive)
        switch response.body {
        case .bytes(let bytes):
            if response.status.code != 204 { head += "Content-Length: \(bytes.count)\r\n".utf8 }
            head += "\r\n".utf8
            if bodyAllowed { head += bytes }
            stream.write(head)
            complete(request, keepsAlive: keepsAlive)
        case .stream(let byteCount, let next):
            let isChunked = byteCount == nil && request.head.request.version == .http11
            if let byteCount { head += "Content-Length: \(byteCount)\r\n".utf8 }
            if isChunked { head += "Transfer-Encoding: chunked\r\n".utf8 }
            stream.write(head + "\r\n".utf8)
            let staysOpen = keepsAlive && (byteCount != nil || isChunked)
            if bodyAllowed {
                pump(next, isChunked: isChunked, left: byteCount, keepsAlive: staysOpen, request)
            } else {
                complete(request, keepsAlive: staysOpen)
            }
        }
    }

    /// Asks for the next piece of a streamed body whenever the last one is with the kernel.
    private func pump(
        _ next: @escaping @Sendable () async throws -> [UInt8]?,
        isChunked: Bool,
        left: Int?,
        keepsAlive: Bool,
        _ request: Current
    ) {
        streamPump = nil
        let carried = Carried(request)
        let piece: @Sendable (Result<[UInt8]?, any Error>) -> Void = { [weak self] result in
            guard let self, self.current === carried.value, !self.stream.isClosed else { return }
            self.setDeadline(self.limits.writeTimeout)
            switch result {
            case .success(let bytes?) where !bytes.isEmpty && bytes.count <= left ?? .max:
                if isChunked {
                    self.stream.write(
                        Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [0x0D, 0x0A]
                    )
                } else {
                    self.stream.write(bytes)
                }
                self.streamPump = { [weak self] in
                    self?.pump(
                        next,
                        isChunked: isChunked,
                        left: left.map { $0 - bytes.count },
                        keepsAlive: keepsAlive,
                        carried.value
                    )
                }
            case .success(let bytes?) where bytes.isEmpty:
                // Nothing yet is no end.
                self.pump(next, isChunked: isChunked, left: left, keepsAlive: keepsAlive, carried.value)
            case .success(nil) where left ?? 0 == 0:
                if isChunked { self.stream.write(Array("0\r\n\r\n".utf8)) }
                self.complete(carried.value, keepsAlive: keepsAlive)
            default:
                // The length was announced and cannot be kept: only an early end tells the client.
                self.stream.close(.failed("the body of a response broke off"))
            }
        }
        Task.immediate(executorPreference: stream.loop) { [loop = stream.loop] in
            let result: Result<[UInt8]?, any Error>
            do { result = .success(try await next()) } catch { result = .failure(error) }
            if loop.isCurrent { piece(result) } else { loop.execute { piece(result) } }
        }
    }

    private func complete(_ request: Current, keepsAlive: Bool) {
        request.isResponseComplete = true
        if !keepsAlive {
            stream.closeWhenDrained()
        } else if !request.isBodyComplete {
            advance()
        } else if stream.pendingByteCount == 0 {
            finish(request)
        }
    }

    /// The request is over; the next one may begin.
    private func finish(_ request: Current) {
        guard current === request else { return }
        current = nil
        if isDraining || (sawEnd && input.isEmpty) { return stream.closeWhenDrained() }
        setDeadline(input.isEmpty ? limits.idleTimeout : limits.headTimeout)
        if !input.isEmpty { stream.loop.execute { self.advance() } }
        updateReading()
    }
}

/// Carries a loop-confined value through a task that does not touch it elsewhere.
struct Carried<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

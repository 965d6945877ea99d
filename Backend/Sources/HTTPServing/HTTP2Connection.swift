import CTidingsNGHTTP2
import EventLoops
import HTTPMessages
import PushTelemetry
import TLSTransport

/// HTTP/2 on a connection (RFC 9113): owns the nghttp2 session. Loop-confined.
final class HTTP2Connection: @unchecked Sendable {
    private unowned let connection: ServerConnection
    private let stream: StreamConnection
    let limits: ServerLimits
    private var session: OpaquePointer?
    private var streams: [Int32: HTTP2Stream] = [:]
    /// Requests whose head arrived in this read; their handlers start after nghttp2 returned.
    private var arrived: [HTTP2Stream] = []
    /// The request whose header block is not complete; there is one at most (RFC 9113 section 4.3).
    private var openHead: (stream: Int32, began: UInt64)?
    private var isSendScheduled = false
    private var isDraining = false
    /// Response bytes queued on the socket before nghttp2 is asked for more.
    private static let outputByteCountMax = 256 << 10

    init(_ connection: ServerConnection) {
        self.connection = connection
        stream = connection.stream
        limits = connection.context.limits
        var option: OpaquePointer?
        nghttp2_option_new(&option)
        nghttp2_option_set_no_auto_window_update(option, 1)
        nghttp2_option_set_max_send_header_block_length(option, 64 << 10)
        // The session is deleted with this object, so the pointer is good for as long as nghttp2 has it.
        nghttp2_session_server_new2(
            &session,
            serverCallbacks,
            Unmanaged.passUnretained(self).toOpaque(),
            option
        )
        nghttp2_option_del(option)
        var settings = [
            entry(
                NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                limits.firstStreamCount ?? limits.streamCountMax
            ),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, limits.bodyBufferByteCountMax),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.headByteCountMax),
        ]
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count)
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, 4 << 20)
        setDeadline()
        scheduleSend()
    }

    deinit { nghttp2_session_del(session) }

    private func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(clamping: value))
    }

    func receive(_ bytes: Span<UInt8>) {
        guard let session else { return }
        let count = bytes.withUnsafeBufferPointer {
            nghttp2_session_mem_recv(session, $0.baseAddress, $0.count)
        }
        guard count >= 0 else {
            connection.context.events.refused(
                400,
                "HTTP/2: \(String(cString: nghttp2_strerror(Int32(count))))"
            )
            // The library sends no GOAWAY of its own for what it calls fatal, such as a flood (RFC 9113 section 10.5).
            nghttp2_session_terminate_session(session, UInt32(NGHTTP2_ENHANCE_YOUR_CALM.rawValue))
            sendNow()
            return stream.closeLingering()
        }
        let started = arrived
        arrived.removeAll(keepingCapacity: true)
        for item in started where !item.isClosed { start(item) }
        setDeadline()
        scheduleSend()
    }

    private var farewell: [UInt8] { connection.context.farewell }

    func drained() { sendNow() }

    func closed() {
        for item in streams.values { item.body.fail() }
        streams.removeAll()
    }

    func drain() {
        guard !isDraining, let session else { return }
        isDraining = true
        // A notice first, so that requests already on their way are still taken; the final GOAWAY follows when the
        // client has had a round trip (RFC 9113 section 6.8).
        nghttp2_submit_shutdown_notice(session)
        scheduleSend()
        let timer = Carried(self)
        _ = LoopTimer(on: stream.loop, after: .milliseconds(100)) {
            guard let session = timer.value.session, !timer.value.stream.isClosed else { return }
            let farewell = timer.value.farewell
            // The bytes are copied.
            nghttp2_submit_goaway(
                session,
                UInt8(NGHTTP2_FLAG_NONE.rawValue),
                nghttp2_session_get_last_proc_stream_id(session),
                NGHTTP2_NO_ERROR.rawValue,
                farewell,
                farewell.count
            )
            timer.value.scheduleSend()
        }
    }

    private func setDeadline() {
        if let openHead {
            // A head that comes in drops does not move its own deadline.
            stream.deadline = openHead.began + limits.headTimeout.wholeMilliseconds
            return
        }
        let timeout = streams.isEmpty ? limits.idleTimeout : max(limits.bodyTimeout, .seconds(60))
        stream.deadline = stream.loop.nowMilliseconds + timeout.wholeMilliseconds
    }

    // MARK: nghttp2 events

    func began(_ id: Int32) {
        openHead = (id, stream.loop.nowMilliseconds)
        let loop = stream.loop
        streams[id] = HTTP2Stream(id: id) { [weak self] in
            loop.execute { [weak self] in self?.bodyWanted(id) }
        }
    }

    func received(_ id: Int32, _ name: String, _ value: String) {
        streams[id]?.add(name, value, limits: limits)
    }

    func headEnded(_ id: Int32) {
        if openHead?.stream == id { openHead = nil }
        guard let item = streams[id], !item.isHeadComplete else { return }
        item.isHeadComplete = true
        arrived.append(item)
    }

    func received(_ id: Int32, _ bytes: UnsafeRawBufferPointer) {
        guard let item = streams[id] else { return }
        if item.isAnswered {
            consume(id, bytes.count)
            item.discardedByteCount += bytes.count
            if item.discardedByteCount > limits.discardByteCountMax { answerHeld(item) }
        } else {
            item.unconsumed += bytes.count
            item.body.feed(Array(bytes), isLast: false)
        }
    }

    func inputEnded(_ id: Int32) {
        guard let item = streams[id] else { return }
        item.isInputEnded = true
        item.body.feed([], isLast: true)
        answerHeld(item)
    }

    /// The last frame of a response was written. Whoever still sends the request is told to stop (RFC 9113 section 8.1): else the stream
    /// would stay, since some clients stop without a word (curl 7.88).
    func responseEnded(_ id: Int32) {
        guard let session, let item = streams[id], !item.isInputEnded else { return }
        nghttp2_submit_rst_stream(session, 0, id, NGHTTP2_NO_ERROR.rawValue)
    }

    func streamClosed(_ id: Int32) {
        if openHead?.stream == id { openHead = nil }
        guard let item = streams.removeValue(forKey: id) else { return }
        item.body.fail()
        item.isClosed = true
        if item.unconsumed > 0, let session {
            // Closing a stream does not give its bytes back to the connection's window.
            nghttp2_session_consume_connection(session, item.unconsumed)
            item.unconsumed = 0
            scheduleSend()
        }
        if isDraining, streams.isEmpty { scheduleSend() }
    }

    func responseStream(_ id: Int32) -> HTTP2Stream? { streams[id] }

    /// The handler takes bytes: the peer may send as many more.
    private func bodyWanted(_ id: Int32) {
        guard let item = streams[id] else { return }
        let count = item.unconsumed - item.body.bufferedByteCount
        if count > 0 {
            item.unconsumed -= count
            consume(id, count)
        }
        if item.mustContinue, !item.isAnswered {
            item.mustContinue = false
            withPairs([(":status", "100")]) { pairs, count in
                nghttp2_submit_headers(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, pairs, count, nil)
            }
            scheduleSend()
        }
    }

    private func consume(_ id: Int32, _ count: Int) {
        guard let session else { return }
        nghttp2_session_consume(session, id, count)
        scheduleSend()
    }

    private func start(_ item: HTTP2Stream) {
        connection.context.events.counters.add("http_requests_total")
        let head: HTTPRequestHead
        do throws(HTTPParseError) { head = try item.head(scheme: connection.scheme) } catch {
            connection.context.events.refused(error.status.code, error.reason)
            return respond(
                HTTPResponse(
                    error.status,
                    ["Content-Type": "text/plain; charset=utf-8"],
                    text: "\(error.status.reasonPhrase): \(error.reason).\n"
                ),
                to: item
            )
        }
        let loop = stream.loop
        connection.handle(HTTPRequest(head: head, body: item.body)) { [weak self, weak item] response in
            guard loop.isCurrent else {
                loop.execute { [weak self, weak item] in
                    if let self, let item { self.respond(response, to: item) }
                }
                return
            }
            if let self, let item { self.respond(response, to: item) }
        }
    }

    private func respond(_ response: HTTPResponse, to item: HTTP2Stream) {
        guard !item.isAnswered, !item.isClosed, let session else { return }
        item.isAnswered = true
        if let fault = response.fault, misbehave(fault, item, session) { return }
        if item.unconsumed > 0 {
            consume(item.id, item.unconsumed)
            item.unconsumed = 0
        }
        guard !waitsForRequest(item) else { return item.held = response }
        submit(response, item, session)
    }

    /// True when a request that needs no more than what is dropped anyway comes to its end first: many clients take it badly when an answer
    /// overtakes their body.
    private func waitsForRequest(_ item: HTTP2Stream) -> Bool {
        if item.isInputEnded || item.mustContinue { return false }
        return item.contentLength.map { $0 <= limits.discardByteCountMax } ?? true
    }

    private func answerHeld(_ item: HTTP2Stream) {
        guard let response = item.held, let session else { return }
        item.held = nil
        submit(response, item, session)
    }

    private func submit(_ response: HTTPResponse, _ item: HTTP2Stream, _ session: OpaquePointer) {
        var fields = [
            (":status", String(response.status.code)), ("date", connection.context.events.httpDate()),
        ]
        for line in response.fields.lines {
            let name = line.name.lowercased()
            // Fields of one connection have no place here (RFC 9113 section 8.2.2).
            if ["connection", "upgrade", "keep-alive", "transfer-encoding"].contains(name) { continue }
            fields.append((name, line.value))
        }
        let mayHaveBody = item.method != "HEAD" && response.status.code != 204 && response.status.code != 304
        switch response.body {
        case .bytes(let bytes):
            if response.status.code != 204 { fields.append(("content-length", String(bytes.count))) }
            item.output = mayHaveBody ? bytes : []
            item.isOutputComplete = true
        case .stream(let byteCount, let next):
            if let byteCount { fields.append(("content-length", String(byteCount))) }
            if mayHaveBody, byteCount != 0 { item.nextPiece = next } else { item.isOutputComplete = true }
        }
        // Without a body END_STREAM sits on HEADERS; an empty DATA frame would break aioapns.
        let hasBody = !item.output.isEmpty || item.nextPiece != nil
        var provider = nghttp2_data_provider()
        provider.read_callback = readResponseBody
        let code = withPairs(fields) { pairs, count in
            if hasBody { return nghttp2_submit_response(session, item.id, pairs, count, &provider) }
            return nghttp2_submit_response(session, item.id, pairs, count, nil)
        }
        if code != 0 { nghttp2_submit_rst_stream(session, 0, item.id, NGHTTP2_INTERNAL_ERROR.rawValue) }
        if item.nextPiece != nil { fetchPiece(item) }
        setDeadline()
        scheduleSend()
    }

    /// True when there is no answer besides.
    private func misbehave(_ fault: TransportFault, _ item: HTTP2Stream, _ session: OpaquePointer) -> Bool {
        switch fault {
        case .hang: return true
        case .reset:
            nghttp2_submit_rst_stream(session, 0, item.id, NGHTTP2_INTERNAL_ERROR.rawValue)
            scheduleSend()
            return true
        case .close:
            stream.close(.failed("closed on demand"))
            return true
        case .goAway:
            // Those above it are on their way and not begun: the client sends them again elsewhere.
            let last = nghttp2_session_get_last_proc_stream_id(session)
            nghttp2_submit_goaway(session, 0, last, NGHTTP2_NO_ERROR.rawValue, nil, 0)
        case .streamLimit(let count):
            var settings = entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, count)
            nghttp2_submit_settings(session, 0, &settings, 1)
        }
        return false
    }

    /// Keeps one piece ahead, so that the last DATA frame with bytes is known to be the last one.
    func fetchPiece(_ item: HTTP2Stream) {
        guard let next = item.nextPiece, !item.isFetching else { return }
        item.isFetching = true
        let take: @Sendable (Result<[UInt8]?, any Error>) -> Void = { [weak self, weak item] result in
            guard let self, let item, !item.isClosed else { return }
            item.isFetching = false
            switch result {
            case .success(let bytes?):
                if bytes.isEmpty { break }
                item.ahead = bytes
                item.rotate()
            case .success(nil):
                item.isOutputComplete = true
                item.nextPiece = nil
                item.rotate()
            case .failure:
                item.nextPiece = nil
                if let session = self.session {
                    nghttp2_submit_rst_stream(session, 0, item.id, NGHTTP2_INTERNAL_ERROR.rawValue)
                }
                return self.scheduleSend()
            }
            if item.nextPiece != nil, item.ahead == nil { self.fetchPiece(item) }
            if let session = self.session { nghttp2_session_resume_data(session, item.id) }
            self.scheduleSend()
        }
        let loop = stream.loop
        Task.immediate(executorPreference: loop) {
            let result: Result<[UInt8]?, any Error>
            do { result = .success(try await next()) } catch { result = .failure(error) }
            let final = result
            if loop.isCurrent { take(final) } else { loop.execute { take(final) } }
        }
    }

    @discardableResult
    private func withPairs(
        _ fields: [(String, String)],
        _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Int32
    ) -> Int32 {
        var bytes: [UInt8] = []
        for (name, value) in fields {
            bytes += name.utf8
            bytes += value.utf8
        }
        return bytes.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return -1 }
            var offset = 0
            let pairs = fields.map { name, value in
                defer { offset += name.utf8.count + value.utf8.count }
                return nghttp2_nv(
                    name: base + offset,
                    value: base + offset + name.utf8.count,
                    namelen: name.utf8.count,
                    valuelen: value.utf8.count,
                    flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
                )
            }
            return pairs.withUnsafeBufferPointer { body($0.baseAddress, $0.count) }
        }
    }

    private func scheduleSend() {
        guard !isSendScheduled else { return }
        isSendScheduled = true
        stream.loop.atTurnEnd { [self] in
            isSendScheduled = false
            sendNow()
        }
    }

    private func sendNow() {
        guard let session, !stream.isClosed else { return }
        while stream.pendingByteCount < Self.outputByteCountMax {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0, let bytes else { break }
            stream.write(UnsafeRawBufferPointer(start: bytes, count: count))
        }
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 {
            stream.closeWhenDrained()
        }
    }
}

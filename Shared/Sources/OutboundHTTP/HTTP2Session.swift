import CTidingsNGHTTP2
import EventLoops
import HTTPMessages
import TLSTransport

/// One HTTP/2 client connection: owns the nghttp2 session. Loop-confined.
final class HTTP2Session: StreamConnectionHandler {
    /// What the pool hears. All calls come on the loop.
    protocol Owner: AnyObject {
        func sessionCanTakeMore(_ session: HTTP2Session)
        /// The server did not process the exchange.
        func resend(_ exchange: HTTP2Exchange)
        /// `unsent` were not processed by the server and may go elsewhere.
        func sessionEnded(
            _ session: HTTP2Session,
            unsent: [HTTP2Exchange],
            reason: StreamCloseReason,
            wasUsable: Bool
        )
    }

    private let owner: any Owner
    private var connection: StreamConnection?
    private var session: OpaquePointer?
    private var exchanges: [Int32: HTTP2Exchange] = [:]
    private(set) var isReady = false
    private var isDraining = false
    /// The connection is gone; the owner has been told.
    private(set) var hasEnded = false
    /// A connection that answered something was a good one.
    private var hasAnswered = false
    /// Kept by the pool: true once it counted the connection as made or failed.
    var hasReportedReady = false
    private var isSendScheduled = false
    private let scheme: String
    private let authority: String
    /// Longer answers end the stream: provider answers are small.
    fileprivate static let answerByteCountMax = 1 << 20
    private let idlePing: UInt64
    private var lastReceived: UInt64 = 0
    private var pingSent: UInt64?
    private static let pingDeadline: UInt64 = 10_000

    init(owner: any Owner, scheme: String, authority: String, idlePing: Duration = .seconds(60)) {
        self.owner = owner
        self.scheme = scheme
        self.authority = authority
        self.idlePing = idlePing.wholeMilliseconds
    }

    deinit { nghttp2_session_del(session) }

    func attach(_ connection: StreamConnection) {
        self.connection = connection
        connection.deadline = connection.loop.nowMilliseconds + 10_000
    }

    /// Streams that may be opened now.
    var capacity: Int {
        guard isReady, !isDraining, connection?.isOpen == true, let session else { return 0 }
        let limit = Int(nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS))
        return max(0, min(limit, HTTP2Pool.streamCountMaxPerConnection) - exchanges.count)
    }

    var isIdle: Bool { exchanges.isEmpty }

    func start(_ exchange: HTTP2Exchange) {
        guard let session else { return exchange.fail(.unreachable, "no connection") }
        var provider = nghttp2_data_provider()
        provider.source.ptr = Unmanaged.passUnretained(exchange).toOpaque()
        provider.read_callback = readBody
        let stream = HeaderBlock.withPairs(exchange.request, scheme, authority) { pairs, count in
            nghttp2_submit_request(
                session,
                nil,
                pairs,
                count,
                &provider,
                Unmanaged.passUnretained(exchange).toOpaque()
            )
        }
        guard stream > 0 else {
            // The stream ids of this connection are used up (RFC 9113 section 5.1.1), or it is closing.
            isDraining = true
            return exchange.fail(.unreachable, "no stream: \(String(cString: nghttp2_strerror(stream)))")
        }
        exchanges[stream] = exchange
        scheduleSend()
    }

    /// Fails what waited too long and keeps an idle connection proven alive.
    func sweep(now: UInt64) {
        connection?.checkDeadline(now: now)
        guard let session else { return }
        for (stream, exchange) in exchanges where now >= exchange.deadline {
            nghttp2_submit_rst_stream(
                session,
                UInt8(NGHTTP2_FLAG_NONE.rawValue),
                stream,
                NGHTTP2_CANCEL.rawValue
            )
            exchanges[stream] = nil
            exchange.fail(.timeout, "no answer in time")
        }
        if let sent = pingSent {
            if now >= sent + Self.pingDeadline { connection?.close(.deadline) }
        } else if isReady, now >= lastReceived + idlePing {
            nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
            pingSent = now
        }
        scheduleSend()
    }

    func close() {
        if let session { nghttp2_session_terminate_session(session, NGHTTP2_NO_ERROR.rawValue) }
        sendNow()
        connection?.closeWhenDrained()
    }

    // MARK: Connection events

    func streamOpened(applicationProtocol: String?) {
        guard let connection else { return }
        if connection.isEncrypted, applicationProtocol != "h2" {
            return connection.close(.failed("the server does not speak HTTP/2"))
        }
        lastReceived = connection.loop.nowMilliseconds
        // The session outlives no call of nghttp2's, and nghttp2 keeps the pointer only as long as the session.
        nghttp2_session_client_new(&session, clientCallbacks, Unmanaged.passUnretained(self).toOpaque())
        var settings = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: 1 << 20
            ),
        ]
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count)
        sendNow()
    }

    func streamReceived(_ bytes: Span<UInt8>) {
        guard let session, let connection else { return }
        lastReceived = connection.loop.nowMilliseconds
        pingSent = nil
        let count = bytes.withUnsafeBufferPointer {
            nghttp2_session_mem_recv(session, $0.baseAddress, $0.count)
        }
        if count < 0 {
            return connection.close(.failed("HTTP/2: \(String(cString: nghttp2_strerror(Int32(count))))"))
        }
        scheduleSend()
        if nghttp2_session_want_read(session) == 0, nghttp2_session_want_write(session) == 0 {
            connection.close(.ended)
        }
        if capacity > 0 { owner.sessionCanTakeMore(self) }
    }

    func streamEnded() { connection?.close(.ended) }

    func streamDrained() { sendNow() }

    func streamClosed(_ reason: StreamCloseReason) {
        let wasUsable = hasAnswered
        hasEnded = true
        isReady = false
        isDraining = true
        var unsent: [HTTP2Exchange] = []
        for exchange in exchanges.values {
            if exchange.isUnprocessed {
                unsent.append(exchange)
            } else {
                exchange.fail(.interrupted, "the connection was lost before the answer: \(reason)")
            }
        }
        exchanges.removeAll()
        owner.sessionEnded(self, unsent: unsent, reason: reason, wasUsable: wasUsable)
        connection = nil
    }

    // MARK: nghttp2 events

    fileprivate func receivedSettings() {
        isReady = true
        connection?.deadline = .max
    }

    /// Streams above `last` were not processed (RFC 9113 section 6.8).
    fileprivate func receivedGoAway(last: Int32) {
        isDraining = true
        for (stream, exchange) in exchanges where stream > last { exchange.isUnprocessed = true }
        if exchanges.isEmpty { connection?.closeWhenDrained() }
    }

    fileprivate func exchange(_ stream: Int32) -> HTTP2Exchange? { exchanges[stream] }

    fileprivate func streamClosed(_ stream: Int32, errorCode: UInt32) {
        guard let exchange = exchanges.removeValue(forKey: stream) else { return }
        hasAnswered = true
        let isRefused = exchange.isUnprocessed || errorCode == NGHTTP2_REFUSED_STREAM.rawValue
        if isRefused, exchange.resendCount < HTTP2Pool.resendCountMax, let connection {
            exchange.resendCount += 1
            exchange.rewind()
            // Not from inside nghttp2: the pool may start it on this very session.
            connection.loop.atTurnEnd { [owner] in owner.resend(exchange) }
        } else {
            exchange.end(errorCode: errorCode)
        }
        if isDraining, exchanges.isEmpty { connection?.closeWhenDrained() }
    }

    private func scheduleSend() {
        guard !isSendScheduled, let connection else { return }
        isSendScheduled = true
        connection.loop.atTurnEnd { [self] in
            isSendScheduled = false
            sendNow()
        }
    }

    private func sendNow() {
        guard let session, let connection else { return }
        // Pull no more than a burst: what stays inside nghttp2 is bounded by flow control, what is queued on
        // the socket is not.
        while connection.pendingByteCount < 256 << 10 {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &bytes)
            guard count > 0, let bytes else { break }
            connection.write(UnsafeRawBufferPointer(start: bytes, count: count))
        }
    }
}

/// One request and its answer. Loop-confined.
final class HTTP2Exchange {
    let request: HTTP2Request
    /// Milliseconds.
    let timeout: UInt64
    var deadline = UInt64.max
    var isUnprocessed = false
    var resendCount = 0
    var sentByteCount = 0
    private var status = 0
    private var fields: HTTPFields = [:]
    private var body: [UInt8] = []
    private var isTooLong = false
    private var done: ((HTTP2Result) -> Void)?

    init(_ request: HTTP2Request, timeout: Duration, done: @escaping (HTTP2Result) -> Void) {
        self.request = request
        self.timeout = timeout.wholeMilliseconds
        self.done = done
    }

    /// Makes it ready to be sent on another connection.
    func rewind() {
        isUnprocessed = false
        sentByteCount = 0
        status = 0
        fields = [:]
        body = []
    }

    func receivedField(_ name: String, _ value: String) {
        if name == ":status" { status = Int(value) ?? 0 } else { fields.append(name, value) }
    }

    func receivedBody(_ bytes: UnsafeRawBufferPointer) {
        guard body.count + bytes.count <= HTTP2Session.answerByteCountMax else {
            isTooLong = true
            return
        }
        body.append(contentsOf: bytes)
    }

    func end(errorCode: UInt32) {
        // A server may answer before it read the body and then reset with NO_ERROR: that is an answer
        // (RFC 9113 section 8.1).
        if isTooLong {
            fail(.badAnswer, "the answer is longer than \(HTTP2Session.answerByteCountMax) bytes")
        } else if status >= 200, errorCode == NGHTTP2_NO_ERROR.rawValue {
            finish(.success(HTTPAnswer(status: HTTPStatus(status), fields: fields, body: body)))
        } else if errorCode == NGHTTP2_REFUSED_STREAM.rawValue {
            fail(.unreachable, "the server refused the stream")
        } else {
            fail(.interrupted, "the stream was reset (HTTP/2 error \(errorCode))")
        }
    }

    func fail(_ kind: OutboundError.Kind, _ reason: String) { finish(.failure(OutboundError(kind, reason))) }

    private func finish(_ result: HTTP2Result) {
        let done = done
        self.done = nil
        done?(result)
    }
}

private func readBody(
    _ session: OpaquePointer?,
    _ stream: Int32,
    _ buffer: UnsafeMutablePointer<UInt8>?,
    _ capacity: Int,
    _ flags: UnsafeMutablePointer<UInt32>?,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let buffer, let flags, let pointer = source?.pointee.ptr else {
        return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    }
    let exchange = Unmanaged<HTTP2Exchange>.fromOpaque(pointer).takeUnretainedValue()
    let body = exchange.request.body
    let count = min(capacity, body.count - exchange.sentByteCount)
    body.withUnsafeBufferPointer { bytes in
        if count > 0, let base = bytes.baseAddress {
            buffer.update(from: base + exchange.sentByteCount, count: count)
        }
    }
    exchange.sentByteCount += count
    if exchange.sentByteCount == body.count { flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
    return count
}

private func session(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
    context.map { Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
}

/// Made once, only read afterwards.
private nonisolated(unsafe) let clientCallbacks: OpaquePointer? = {
    var callbacks: OpaquePointer?
    nghttp2_session_callbacks_new(&callbacks)
    nghttp2_session_callbacks_set_on_header_callback(callbacks) {
        _,
        frame,
        name,
        nameCount,
        value,
        valueCount,
        _,
        context in
        guard let frame, let name, let value else { return 0 }
        session(context)?.exchange(tidings_h2_frame_stream(frame))?.receivedField(
            String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self),
            String(decoding: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self)
        )
        return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
        _,
        _,
        stream,
        bytes,
        count,
        context in
        session(context)?.exchange(stream)?.receivedBody(UnsafeRawBufferPointer(start: bytes, count: count))
        return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, code, context in
        session(context)?.streamClosed(stream, errorCode: code)
        return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
        guard let frame else { return 0 }
        let isAcknowledgement = tidings_h2_frame_flags(frame) & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0
        switch UInt32(tidings_h2_frame_type(frame)) {
        case NGHTTP2_SETTINGS.rawValue where !isAcknowledgement: session(context)?.receivedSettings()
        case NGHTTP2_GOAWAY.rawValue:
            session(context)?.receivedGoAway(last: tidings_h2_goaway_last_stream(frame))
        default: break
        }
        return 0
    }
    return callbacks
}()

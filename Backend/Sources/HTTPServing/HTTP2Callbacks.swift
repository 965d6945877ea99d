import CTidingsNGHTTP2

/// Gives nghttp2 the next bytes of a response; the last ones end the stream.
func readResponseBody(
    _ session: OpaquePointer?,
    _ stream: Int32,
    _ buffer: UnsafeMutablePointer<UInt8>?,
    _ capacity: Int,
    _ flags: UnsafeMutablePointer<UInt32>?,
    _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let buffer, let flags, let owner = http2Connection(context), let item = owner.responseStream(stream)
    else {
        return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
    item.rotate()
    let left = item.output.count - item.outputStart
    // Hold back until it is known whether more follows.
    if left == 0 && !item.isOutputComplete || (!item.isOutputComplete && item.ahead == nil) {
        owner.fetchPiece(item)
        if !(item.isOutputComplete || item.ahead != nil) { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
    }
    let count = min(capacity, item.output.count - item.outputStart)
    item.output.withUnsafeBufferPointer { bytes in
        if count > 0, let base = bytes.baseAddress {
            buffer.update(from: base + item.outputStart, count: count)
        }
    }
    item.outputStart += count
    item.rotate()
    if item.isOutputComplete, item.ahead == nil, item.outputStart == item.output.count {
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
    }
    return count
}

private func http2Connection(_ context: UnsafeMutableRawPointer?) -> HTTP2Connection? {
    context.map { Unmanaged<HTTP2Connection>.fromOpaque($0).takeUnretainedValue() }
}

/// Made once, only read afterwards.
nonisolated(unsafe) let serverCallbacks: OpaquePointer? = {
    var callbacks: OpaquePointer?
    nghttp2_session_callbacks_new(&callbacks)
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, context in
        guard let frame else { return 0 }
        let kind = UInt32(tidings_h2_frame_type(frame))
        let isMessage = kind == NGHTTP2_HEADERS.rawValue || kind == NGHTTP2_DATA.rawValue
        if isMessage, tidings_h2_frame_flags(frame) & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 {
            http2Connection(context)?.responseEnded(tidings_h2_frame_stream(frame))
        }
        return 0
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
        guard let frame, tidings_h2_headers_category(frame) == Int(NGHTTP2_HCAT_REQUEST.rawValue) else {
            return 0
        }
        http2Connection(context)?.began(tidings_h2_frame_stream(frame))
        return 0
    }
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
        // Trailer fields never join the head.
        guard tidings_h2_headers_category(frame) == Int(NGHTTP2_HCAT_REQUEST.rawValue) else { return 0 }
        guard
            let text = String(validating: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self)
        else {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue
        }
        http2Connection(context)?.received(
            tidings_h2_frame_stream(frame),
            String(decoding: UnsafeBufferPointer(start: name, count: nameCount), as: UTF8.self),
            text
        )
        return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
        guard let frame, let owner = http2Connection(context) else { return 0 }
        let type = UInt32(tidings_h2_frame_type(frame))
        let id = tidings_h2_frame_stream(frame)
        if type == NGHTTP2_HEADERS.rawValue { owner.headEnded(id) }
        if type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue,
            tidings_h2_frame_flags(frame) & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        {
            owner.inputEnded(id)
        }
        return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
        _,
        _,
        stream,
        bytes,
        count,
        context in
        http2Connection(context)?.received(stream, UnsafeRawBufferPointer(start: bytes, count: count))
        return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, context in
        http2Connection(context)?.streamClosed(stream)
        return 0
    }
    return callbacks
}()

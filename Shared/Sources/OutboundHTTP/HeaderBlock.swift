import CTidingsNGHTTP2

/// The header fields of one request in nghttp2's form, on the stack: a push has no other work that takes as long.
enum HeaderBlock {
    /// Calls `body` with the fields; nghttp2 copies what they point to before it returns.
    static func withPairs(
        _ request: HTTP2Request,
        _ scheme: String,
        _ authority: String,
        _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Int32
    ) -> Int32 {
        let length = String(request.body.count)
        let fixed = [
            (":method", "POST"), (":scheme", scheme), (":authority", authority), (":path", request.path),
            ("content-length", length),
        ]
        var byteCount = fixed.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count }
        for field in request.fields { byteCount += field.name.utf8.count + field.value.utf8.count }
        let fieldCount = fixed.count + request.fields.count
        return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: byteCount) { bytes in
            withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fieldCount) { pairs in
                var rest = bytes[...]
                var count = 0
                func add(_ name: String, _ value: String, isUnique: Bool) {
                    let (nameBytes, valueBytes) = (put(name, &rest), put(value, &rest))
                    let flags = isUnique ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE
                    pairs.initializeElement(
                        at: count,
                        to: nghttp2_nv(
                            name: nameBytes.baseAddress,
                            value: valueBytes.baseAddress,
                            namelen: nameBytes.count,
                            valuelen: valueBytes.count,
                            flags: UInt8(flags.rawValue)
                        )
                    )
                    count += 1
                }
                for (name, value) in fixed.dropLast() { add(name, value, isUnique: false) }
                for field in request.fields { add(field.name, field.value, isUnique: field.isUnique) }
                add("content-length", length, isUnique: true)
                return body(pairs.baseAddress, count)
            }
        }
    }

    /// Copies a text to the beginning of `rest` and cuts it off there.
    private static func put(
        _ text: String,
        _ rest: inout Slice<UnsafeMutableBufferPointer<UInt8>>
    ) -> UnsafeMutableBufferPointer<UInt8> {
        let end = rest.initialize(fromContentsOf: text.utf8)
        defer { rest = rest[end...] }
        return UnsafeMutableBufferPointer(rebasing: rest[..<end])
    }
}

import CTidingsCurl
import EventLoops
import HTTPMessages

/// One request under way: owns the easy handle, its header list and the bytes of the answer. Loop-confined after
/// it is made, which `@unchecked Sendable` rests on.
final class CurlTransfer: @unchecked Sendable {
    let easy: UnsafeMutableRawPointer?
    private let headerList: UnsafeMutablePointer<curl_slist>?
    private let body: [UInt8]?
    private let bodyByteCountMax: Int
    private var continuation: CheckedContinuation<HTTPAnswer, any Error>?
    private var fields: HTTPFields = [:]
    private var answer: [UInt8] = []

    init(
        _ request: OutboundRequest,
        authorityFile: String?,
        identity: HTTPClient.Identity?,
        userAgent: String,
        _ continuation: CheckedContinuation<HTTPAnswer, any Error>
    ) {
        self.continuation = continuation
        body = request.body
        bodyByteCountMax = request.answerByteCountMax
        easy = curl_easy_init()
        var list: UnsafeMutablePointer<curl_slist>?
        // An empty Expect stops curl from asking for 100-continue, which WNS does not want.
        var lines = ["Expect:"]
        for line in request.fields.lines {
            // A line end would begin another header line.
            guard line.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else { continue }
            // A line with an empty value needs the semicolon form, or curl would drop it.
            lines.append(line.value.isEmpty ? "\(line.name);" : "\(line.name): \(line.value)")
        }
        if request.fields["Content-Type"] == nil { lines.append("Content-Type:") }
        for line in lines { list = curl_slist_append(list, line) }
        headerList = list
        guard let easy else { return }
        tidings_curl_set_string(easy, CURLOPT_URL, request.url.description)
        tidings_curl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
        tidings_curl_set_string(easy, CURLOPT_USERAGENT, userAgent)
        tidings_curl_set_pointer(easy, CURLOPT_HTTPHEADER, headerList)
        tidings_curl_set_long(easy, CURLOPT_NOSIGNAL, 1)
        tidings_curl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(request.timeout.wholeMilliseconds))
        tidings_curl_set_long(
            easy,
            CURLOPT_CONNECTTIMEOUT_MS,
            min(10_000, Int(request.timeout.wholeMilliseconds))
        )
        tidings_curl_set_long(easy, CURLOPT_PATH_AS_IS, 1)
        if request.url.isLoopback { tidings_curl_set_string(easy, CURLOPT_PROXY, "") }
        if request.refusesPrivateAddresses { tidings_curl_refuse_private(easy) }
        if let authorityFile {
            tidings_curl_set_string(easy, CURLOPT_CAINFO, authorityFile)
            tidings_curl_set_string(easy, CURLOPT_CAPATH, nil)
        }
        if let identity {
            tidings_curl_set_bytes(
                easy,
                CURLOPT_SSLCERT_BLOB,
                identity.certificateChain,
                identity.certificateChain.count
            )
            tidings_curl_set_bytes(
                easy,
                CURLOPT_SSLKEY_BLOB,
                identity.privateKey,
                identity.privateKey.count
            )
        }
        setMethod(request.method, easy)
        tidings_curl_set_write(easy) { bytes, size, count, context in
            CurlTransfer.of(context)?.received(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
        }
        tidings_curl_set_header(easy) { bytes, size, count, context in
            CurlTransfer.of(context)?.receivedHeader(
                UnsafeRawBufferPointer(start: bytes, count: size * count)
            ) ?? 0
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        tidings_curl_set_pointer(easy, CURLOPT_WRITEDATA, context)
        tidings_curl_set_pointer(easy, CURLOPT_HEADERDATA, context)
        tidings_curl_set_pointer(easy, CURLOPT_PRIVATE, context)
    }

    deinit {
        if let easy { curl_easy_cleanup(easy) }
        curl_slist_free_all(headerList)
    }

    static func of(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
        context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private func setMethod(_ method: String, _ easy: UnsafeMutableRawPointer) {
        switch (method, body) {
        case ("GET", nil): break
        case ("HEAD", nil): tidings_curl_set_long(easy, CURLOPT_NOBODY, 1)
        case (_, let body?):
            tidings_curl_set_long(easy, CURLOPT_POST, 1)
            tidings_curl_set_long(easy, CURLOPT_POSTFIELDSIZE, body.count)
            // Curl copies the bytes, so they need not stay in place.
            _ = body.withUnsafeBytes {
                tidings_curl_set_pointer(
                    easy,
                    CURLOPT_COPYPOSTFIELDS,
                    UnsafeMutableRawPointer(mutating: $0.baseAddress)
                )
            }
            tidings_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        case ("POST", nil), ("PUT", nil), ("PATCH", nil):
            tidings_curl_set_long(easy, CURLOPT_POST, 1)
            tidings_curl_set_long(easy, CURLOPT_POSTFIELDSIZE, 0)
            tidings_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        default: tidings_curl_set_string(easy, CURLOPT_CUSTOMREQUEST, method)
        }
    }

    private func received(_ bytes: UnsafeRawBufferPointer) -> Int {
        // A count other than the given one makes curl fail the transfer.
        guard answer.count + bytes.count <= bodyByteCountMax else { return 0 }
        answer.append(contentsOf: bytes)
        return bytes.count
    }

    private func receivedHeader(_ bytes: UnsafeRawBufferPointer) -> Int {
        let line = ASCII.trimmed(String(decoding: bytes, as: UTF8.self))
        // Each status line begins a new head; only the last one, the final answer, counts.
        if line.hasPrefix("HTTP/") { fields = [:] }
        if let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) {
            fields.append(String(line[..<colon]), ASCII.trimmed(line[line.index(after: colon)...]))
        }
        return bytes.count
    }

    /// Answers whoever waits. Called once.
    func finish(_ code: CURLcode) {
        let waiting = continuation
        continuation = nil
        guard code == CURLE_OK, let easy else {
            let text =
                code == CURLE_PEER_FAILED_VERIFICATION
                ? "its certificate is not trusted (for a certificate authority of your own name its file: --ca)"
                : String(cString: curl_easy_strerror(code))
            waiting?.resume(throwing: OutboundError(Self.kind(of: code), text))
            return
        }
        waiting?.resume(
            returning: HTTPAnswer(status: HTTPStatus(tidings_curl_status(easy)), fields: fields, body: answer)
        )
    }

    private static func kind(of code: CURLcode) -> OutboundError.Kind {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR,
            CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE:
            .unreachable
        case CURLE_OPERATION_TIMEDOUT: .timeout
        case CURLE_WRITE_ERROR, CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT:
            .badAnswer
        default: .interrupted
        }
    }
}

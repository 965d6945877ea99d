import CTidingsOpenSSL

/// The TLS state of one socket; owns the `SSL`, not the descriptor. Used by one loop.
struct TLSConnection: ~Copyable {
    enum Progress: Equatable {
        case done(Int)
        /// The socket must become readable, or writable, first.
        case wantsRead, wantsWrite
        /// The peer sent close_notify, or the stream ended.
        case ended
        case failed(String)
    }

    private let ssl: OpaquePointer
    private(set) var isEstablished = false
    /// SHA-256 of the certificate that the peer showed in the handshake.
    private(set) var peerCertificateHash: [UInt8]?

    init(
        server context: TLSContext,
        descriptor: Int32,
        asksForCertificate: Bool
    ) throws(TLSError) {
        ssl = try Self.make(context, descriptor)
        // Whoever signed it: the handler decides by the certificate itself.
        if asksForCertificate { SSL_set_verify(ssl, SSL_VERIFY_PEER) { _, _ in 1 } }
        SSL_set_accept_state(ssl)
    }

    /// A client checks the certificate for `host`, a name or a numeric address (RFC 9110 section 4.3.4).
    init(client context: TLSContext, descriptor: Int32, host: String) throws(TLSError) {
        ssl = try Self.makeClient(context, descriptor, host)
    }

    deinit { SSL_free(ssl) }

    private static func make(_ context: TLSContext, _ descriptor: Int32) throws(TLSError) -> OpaquePointer {
        guard let ssl = SSL_new(context.pointer) else { throw TLSError("cannot make a TLS connection") }
        guard SSL_set_fd(ssl, descriptor) == 1 else {
            SSL_free(ssl)
            throw TLSError("cannot attach the socket")
        }
        return ssl
    }

    private static func makeClient(
        _ context: TLSContext,
        _ descriptor: Int32,
        _ host: String
    ) throws(TLSError) -> OpaquePointer {
        let ssl = try make(context, descriptor)
        SSL_set_connect_state(ssl)
        if X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1 { return ssl }
        ERR_clear_error()
        guard SSL_set1_host(ssl, host) == 1, tidings_ssl_set_host_name(ssl, host) == 1 else {
            SSL_free(ssl)
            throw TLSError("cannot check the host name")
        }
        return ssl
    }

    mutating func handshake() -> Progress {
        ERR_clear_error()
        let result = SSL_do_handshake(ssl)
        guard result == 1 else { return progress(of: result) }
        isEstablished = true
        peerCertificateHash = Self.peerCertificateHash(ssl)
        return .done(0)
    }

    /// The protocol that ALPN agreed on.
    var applicationProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(ssl, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    private static func peerCertificateHash(_ ssl: OpaquePointer) -> [UInt8]? {
        guard let pointer = SSL_get1_peer_certificate(ssl) else { return nil }
        let certificate = Certificate(owning: pointer)
        var hash = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        guard X509_digest(certificate.pointer, EVP_sha256(), &hash, &count) == 1, count == 32 else {
            return nil
        }
        return hash
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Progress {
        ERR_clear_error()
        let count = SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count))
        return count > 0 ? .done(Int(count)) : progress(of: count)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Progress {
        ERR_clear_error()
        let count = SSL_write(ssl, bytes.baseAddress, Int32(clamping: bytes.count))
        return count > 0 ? .done(Int(count)) : progress(of: count)
    }

    /// Sends close_notify if the socket takes it at once.
    func sendCloseNotify() {
        ERR_clear_error()
        if isEstablished { SSL_shutdown(ssl) }
        ERR_clear_error()
    }

    private func progress(of result: Int32) -> Progress {
        switch SSL_get_error(ssl, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .ended
        case SSL_ERROR_SYSCALL:
            let queued = ERR_peek_error() != 0
            return queued ? .failed(TLSError("TLS").description) : .ended
        default:
            let verify = SSL_get_verify_result(ssl)
            let detail =
                verify == X509_V_OK
                ? "" : " (certificate: \(String(cString: X509_verify_cert_error_string(Int(verify)))))"
            return .failed(TLSError("TLS").description + detail)
        }
    }
}

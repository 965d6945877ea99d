import CTidingsOpenSSL
import Synchronization

/// A TLS set-up failed, or a connection broke the protocol.
package struct TLSError: Error, Sendable, CustomStringConvertible {
    package let description: String

    /// The oldest entry of OpenSSL's error queue of this thread, which is emptied.
    init(_ action: String) {
        let code = ERR_get_error()
        var text = [CChar](repeating: 0, count: 256)
        ERR_error_string_n(code, &text, text.count)
        ERR_clear_error()
        let reason = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        description = code == 0 ? action : "\(action): \(reason)"
    }
}

/// The certificates, trust and protocols of many connections. Immutable once made, hence shared freely:
/// an `SSL_CTX` counts its references and locks itself.
package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer
    /// The ALPN wire form (RFC 7301 section 3.1), in order of preference; read by the selection callback.
    fileprivate let protocols: [UInt8]

    private init(_ method: OpaquePointer?, protocols: [String]) throws(TLSError) {
        guard let method, let pointer = SSL_CTX_new(method) else {
            throw TLSError("cannot make a TLS context")
        }
        self.pointer = pointer
        self.protocols = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        tidings_ssl_set_modes(pointer)
    }

    deinit { SSL_CTX_free(pointer) }

    /// A server's context from PEM text: a chain that begins with the leaf, and its key.
    package static func server(
        certificateChain: [UInt8],
        privateKey: [UInt8],
        protocols: [String] = ["h2", "http/1.1"]
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(TLS_server_method(), protocols: protocols)
        try context.show(certificateChain, privateKey)
        tidings_ssl_no_tickets(context.pointer)
        // The context owns the array that the callback reads, and outlives every connection made from it.
        SSL_CTX_set_alpn_select_cb(
            context.pointer,
            selectProtocol,
            Unmanaged.passUnretained(context).toOpaque()
        )
        return context
    }

    /// What the peer learns of this side, from PEM text.
    private func show(_ certificateChain: [UInt8], _ privateKey: [UInt8]) throws(TLSError) {
        let chain = try Certificates.read(certificateChain)
        guard let leaf = chain.first else { throw TLSError("the certificate file holds no certificate") }
        guard SSL_CTX_use_certificate(pointer, leaf.pointer) == 1 else {
            throw TLSError("cannot use the certificate")
        }
        for issuer in chain.dropFirst() where SSL_CTX_add0_chain_cert_up(pointer, issuer) != 1 {
            throw TLSError("cannot use the certificate chain")
        }
        let key = try Certificates.readKey(privateKey)
        guard SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1, SSL_CTX_check_private_key(pointer) == 1
        else { throw TLSError("the private key does not belong to the certificate") }
    }

    /// A client's context. Without `trusting` the machine's trust store decides; with it only those PEM
    /// certificates do.
    ///
    /// - Parameter identity: PEM texts, shown to a server that asks for a certificate.
    package static func client(
        trusting authorities: [UInt8]? = nil,
        showing identity: (certificateChain: [UInt8], privateKey: [UInt8])? = nil,
        protocols: [String]
    ) throws(TLSError) -> TLSContext {
        let context = try TLSContext(TLS_client_method(), protocols: protocols)
        if let identity { try context.show(identity.certificateChain, identity.privateKey) }
        SSL_CTX_set_verify(context.pointer, SSL_VERIFY_PEER, nil)
        if let authorities {
            let store = SSL_CTX_get_cert_store(context.pointer)
            for certificate in try Certificates.read(authorities)
            where X509_STORE_add_cert(store, certificate.pointer) != 1 {
                throw TLSError("cannot trust the certificate authority")
            }
        } else if SSL_CTX_set_default_verify_paths(context.pointer) != 1 {
            throw TLSError("cannot read the machine's trust store")
        }
        if !protocols.isEmpty {
            guard
                SSL_CTX_set_alpn_protos(context.pointer, context.protocols, UInt32(context.protocols.count))
                    == 0
            else {
                throw TLSError("cannot offer the application protocols")
            }
        }
        return context
    }
}

private func SSL_CTX_add0_chain_cert_up(_ context: OpaquePointer, _ certificate: Certificate) -> Int {
    // SSL_CTX_add1_chain_cert is a macro over this control call, which takes a reference of its own.
    SSL_CTX_ctrl(context, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate.pointer))
}

/// Takes the server's first protocol that the client offers. No overlap is no error: some clients offer nothing
/// we name and speak HTTP/2 at once (aioapns), and the first bytes tell.
private func selectProtocol(
    _ ssl: OpaquePointer?,
    _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
    _ chosenCount: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>?,
    _ offeredCount: UInt32,
    _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let argument, let offered, let chosen, let chosenCount else { return SSL_TLSEXT_ERR_NOACK }
    let context = Unmanaged<TLSContext>.fromOpaque(argument).takeUnretainedValue()
    return context.protocols.withUnsafeBufferPointer { ours in
        var output: UnsafeMutablePointer<UInt8>?
        let result = SSL_select_next_proto(
            &output,
            chosenCount,
            ours.baseAddress,
            UInt32(ours.count),
            offered,
            offeredCount
        )
        guard result == OPENSSL_NPN_NEGOTIATED, let output else { return SSL_TLSEXT_ERR_NOACK }
        // `output` may point into our array, whose address is only good here: find the entry in the client's list, which
        // lives until the handshake ends.
        let count = Int(chosenCount.pointee)
        var index = 0
        while index < Int(offeredCount) {
            let length = Int(offered[index])
            if length == count, (0..<count).allSatisfy({ offered[index + 1 + $0] == output[$0] }) {
                chosen.pointee = offered + index + 1
                return SSL_TLSEXT_ERR_OK
            }
            index += 1 + length
        }
        return SSL_TLSEXT_ERR_NOACK
    }
}

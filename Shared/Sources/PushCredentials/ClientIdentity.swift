import CTidingsOpenSSL
package import TidingsModels

/// A certificate and its key, which a client shows in the TLS handshake: how Apple and Microsoft knew providers before there were
/// tokens.
package struct ClientIdentity: Sendable, Equatable {
    /// PEM, the leaf first.
    package let certificateChain: [UInt8]
    /// PEM, not encrypted.
    package let privateKey: [UInt8]
    /// SHA-256 of the leaf.
    package let fingerprint: [UInt8]
    /// The user id of the leaf's subject (OID 0.9.2342.19200300.100.1.1). Apple writes the bundle id there.
    package let userID: String?
    /// When the leaf ends.
    package let expires: Timestamp

    /// From PEM text that holds the certificates, the leaf first, and the key; or from PKCS#12.
    ///
    /// - Parameter password: Of an encrypted key, or of the PKCS#12 file.
    package init(_ bytes: [UInt8], password: String = "") throws(CredentialError) {
        if bytes.firstRange(of: Array("-----BEGIN ".utf8)) != nil {
            try self.init(pem: bytes, password: password)
        } else {
            try self.init(pkcs12: bytes, password: password)
        }
    }

    private init(pkcs12 bytes: [UInt8], password: String) throws(CredentialError) {
        let (chain, key) = (try MemoryBIO(), try MemoryBIO())
        let code = chain.use { chain in
            key.use { key in tidings_pkcs12_to_pem(bytes, bytes.count, password, chain, key) }
        }
        switch code {
        case 1: try self.init(pem: chain.bytes + key.bytes, password: "")
        case 0: throw CredentialError("the password of the PKCS#12 file is wrong")
        default:
            throw CredentialError(
                "neither PEM nor a PKCS#12 file that holds a certificate with its private key"
            )
        }
    }

    private init(pem: [UInt8], password: String) throws(CredentialError) {
        var certificates: [OpaquePointer] = []
        defer { for certificate in certificates { X509_free(certificate) } }
        let reader = try MemoryBIO(pem)
        reader.use { reader in
            while let certificate = PEM_read_bio_X509(reader, nil, nil, nil) {
                certificates.append(certificate)
            }
        }
        ERR_clear_error()
        guard let leaf = certificates.first else { throw CredentialError("there is no certificate in it") }
        guard let key = try MemoryBIO(pem).use({ tidings_read_private_key($0, password) }) else {
            throw CredentialError("there is no private key in it that the password opens")
        }
        defer { EVP_PKEY_free(key) }
        guard X509_check_private_key(leaf, key) == 1 else {
            throw CredentialError("the private key does not belong to the first certificate")
        }
        var digest = [UInt8](repeating: 0, count: 32)
        var name = [CChar](repeating: 0, count: 256)
        X509_digest(leaf, EVP_sha256(), &digest, nil)
        let nameCount = Int(tidings_x509_user_id(leaf, &name, Int32(name.count)))
        let ends = tidings_x509_ends(leaf)
        guard ends >= 0 else { throw CredentialError("the certificate does not say when it ends") }
        let (chainText, keyText) = (try MemoryBIO(), try MemoryBIO())
        for certificate in certificates { _ = chainText.use { PEM_write_bio_X509($0, certificate) } }
        _ = keyText.use { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
        certificateChain = chainText.bytes
        privateKey = keyText.bytes
        fingerprint = digest
        userID =
            nameCount > 0
            ? String(decoding: name.prefix(nameCount).map { UInt8(bitPattern: $0) }, as: UTF8.self) : nil
        expires = Timestamp(seconds: ends)
    }

    /// A certificate that its own new P-256 key signs, good for ten years.
    package static func make(name: String, userID: String) throws(CredentialError) -> ClientIdentity {
        let (chain, key) = (try MemoryBIO(), try MemoryBIO())
        let code = chain.use { chain in
            key.use { key in tidings_make_identity(name, userID, 3650, chain, key) }
        }
        guard code == 1 else { throw CredentialError("cannot make a certificate") }
        return try ClientIdentity(pem: chain.bytes + key.bytes, password: "")
    }

    /// Certificates and key in one PEM text, which most tools take.
    package var pem: [UInt8] { certificateChain + privateKey }
}

/// Memory that OpenSSL reads from or writes to.
private final class MemoryBIO {
    private let pointer: OpaquePointer

    init() throws(CredentialError) {
        guard let pointer = BIO_new(BIO_s_mem()) else { throw CredentialError("out of memory") }
        self.pointer = pointer
    }

    /// Holds a copy of the bytes.
    convenience init(_ bytes: [UInt8]) throws(CredentialError) {
        try self.init()
        guard BIO_write(pointer, bytes, Int32(clamping: bytes.count)) == Int32(clamping: bytes.count) else {
            throw CredentialError("out of memory")
        }
    }

    deinit { BIO_free(pointer) }

    /// The pointer is good inside alone: outside the object may be gone before the call that was given it.
    func use<Value>(_ body: (OpaquePointer) -> Value) -> Value {
        withExtendedLifetime(self) { body(pointer) }
    }

    var bytes: [UInt8] {
        use { pointer in
            var start: UnsafePointer<CChar>?
            let count = tidings_bio_bytes(pointer, &start)
            guard let start else { return [] }
            return Array(UnsafeRawBufferPointer(start: start, count: count))
        }
    }
}

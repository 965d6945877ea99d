import CTidingsOpenSSL

/// One X.509 certificate; owns a reference.
final class Certificate {
    let pointer: OpaquePointer
    init(owning pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(pointer) }
}

/// One private key; owns a reference.
final class CertificateKey {
    let pointer: OpaquePointer
    init(owning pointer: OpaquePointer) { self.pointer = pointer }
    deinit { EVP_PKEY_free(pointer) }
}

enum Certificates {
    /// Every certificate of a PEM text, in order.
    static func read(_ pem: [UInt8]) throws(TLSError) -> [Certificate] {
        var certificates: [Certificate] = []
        try withReader(of: pem) { bio in
            while let pointer = PEM_read_bio_X509(bio, nil, nil, nil) {
                certificates.append(Certificate(owning: pointer))
            }
        }
        // The read past the last one always leaves an error behind.
        ERR_clear_error()
        return certificates
    }

    static func readKey(_ pem: [UInt8]) throws(TLSError) -> CertificateKey {
        let key = try withReader(of: pem) { tidings_read_private_key($0, nil) }
        guard let key else { throw TLSError("cannot read the private key") }
        return CertificateKey(owning: key)
    }

    /// The BIO reads the array's own memory and must not outlive this call.
    private static func withReader<Value>(
        of pem: [UInt8],
        _ body: (OpaquePointer) -> Value
    ) throws(TLSError) -> Value {
        guard !pem.isEmpty else { throw TLSError("the PEM text is empty") }
        let value: Value? = pem.withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            return body(bio)
        }
        guard let value else { throw TLSError("out of memory") }
        return value
    }
}

/// A certificate authority for development: it signs leaves for the loopback names and nothing trusts it but what
/// is told to. Never for production.
package struct DevelopmentAuthority: Sendable {
    /// PEM texts.
    package let certificate: [UInt8]
    package let privateKey: [UInt8]

    package struct Leaf: Sendable {
        package let certificateChain: [UInt8]
        package let privateKey: [UInt8]
    }

    package init(certificate: [UInt8], privateKey: [UInt8]) {
        self.certificate = certificate
        self.privateKey = privateKey
    }

    /// A new authority, valid for ten years.
    package static func make() throws(TLSError) -> DevelopmentAuthority {
        let key = try newKey()
        let certificate = try newCertificate(commonName: "Tidings development CA", days: 3650, key: key)
        X509_set_issuer_name(certificate.pointer, X509_get_subject_name(certificate.pointer))
        try add(NID_basic_constraints, "critical,CA:TRUE,pathlen:0", to: certificate, issuer: certificate)
        try add(NID_key_usage, "critical,keyCertSign,cRLSign", to: certificate, issuer: certificate)
        try add(NID_subject_key_identifier, "hash", to: certificate, issuer: certificate)
        try sign(certificate, with: key)
        return DevelopmentAuthority(certificate: try pem(certificate), privateKey: try pem(key))
    }

    /// A leaf for `localhost`, `127.0.0.1` and `::1`, valid for 397 days.
    package func makeLeaf() throws(TLSError) -> Leaf {
        guard let issuer = try Certificates.read(certificate).first else {
            throw TLSError("the CA file holds no certificate")
        }
        let issuerKey = try Certificates.readKey(privateKey)
        let key = try Self.newKey()
        let leaf = try Self.newCertificate(commonName: "localhost", days: 397, key: key)
        X509_set_issuer_name(leaf.pointer, X509_get_subject_name(issuer.pointer))
        try Self.add(NID_basic_constraints, "critical,CA:FALSE", to: leaf, issuer: issuer)
        try Self.add(NID_key_usage, "critical,digitalSignature", to: leaf, issuer: issuer)
        try Self.add(NID_ext_key_usage, "serverAuth", to: leaf, issuer: issuer)
        try Self.add(NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1,IP:::1", to: leaf, issuer: issuer)
        try Self.add(NID_authority_key_identifier, "keyid", to: leaf, issuer: issuer)
        try Self.sign(leaf, with: issuerKey)
        return Leaf(certificateChain: try Self.pem(leaf) + certificate, privateKey: try Self.pem(key))
    }

    private static func newKey() throws(TLSError) -> CertificateKey {
        guard let pointer = tidings_ec_generate() else { throw TLSError("cannot make a key") }
        return CertificateKey(owning: pointer)
    }

    private static func newCertificate(
        commonName: String,
        days: Int,
        key: CertificateKey
    ) throws(TLSError) -> Certificate {
        guard let pointer = X509_new() else { throw TLSError("out of memory") }
        let certificate = Certificate(owning: pointer)
        var serial = [UInt8](repeating: 0, count: 16)
        guard RAND_bytes(&serial, 16) == 1 else { throw TLSError("no randomness") }
        serial[0] &= 0x7F
        let number = BN_bin2bn(serial, 16, nil)
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(pointer))
        BN_free(number)
        X509_gmtime_adj(X509_getm_notBefore(pointer), -3600)
        X509_gmtime_adj(X509_getm_notAfter(pointer), days * 86400)
        let name = X509_get_subject_name(pointer)
        guard tidings_x509_version_3(pointer) == 1, X509_set_pubkey(pointer, key.pointer) == 1,
            X509_NAME_add_entry_by_txt(
                name,
                "CN",
                MBSTRING_UTF8,
                commonName,
                Int32(commonName.utf8.count),
                -1,
                0
            ) == 1
        else { throw TLSError("cannot make a certificate") }
        return certificate
    }

    private static func add(
        _ nid: Int32,
        _ value: String,
        to certificate: Certificate,
        issuer: Certificate
    ) throws(TLSError) {
        guard tidings_x509_add_extension(certificate.pointer, issuer.pointer, nid, value) == 1 else {
            throw TLSError("cannot add a certificate extension")
        }
    }

    private static func sign(_ certificate: Certificate, with key: CertificateKey) throws(TLSError) {
        guard X509_sign(certificate.pointer, key.pointer, EVP_sha256()) > 0 else {
            throw TLSError("cannot sign")
        }
    }

    private static func pem(_ certificate: Certificate) throws(TLSError) -> [UInt8] {
        try text { PEM_write_bio_X509($0, certificate.pointer) }
    }

    private static func pem(_ key: CertificateKey) throws(TLSError) -> [UInt8] {
        try text { PEM_write_bio_PrivateKey($0, key.pointer, nil, nil, 0, nil, nil) }
    }

    private static func text(_ write: (OpaquePointer) -> Int32) throws(TLSError) -> [UInt8] {
        guard let bio = BIO_new(BIO_s_mem()) else { throw TLSError("out of memory") }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { throw TLSError("cannot write PEM text") }
        var bytes: UnsafePointer<CChar>?
        let count = tidings_bio_bytes(bio, &bytes)
        guard let bytes else { return [] }
        return Array(UnsafeRawBufferPointer(start: bytes, count: count))
    }
}

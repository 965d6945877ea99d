import CTidingsOpenSSL

/// A key could not be read or used.
package struct CredentialError: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
        ERR_clear_error()
    }
}

/// A private or public key for ES256 (P-256) or RS256 (RFC 7518 sections 3.3 and 3.4). Immutable; an `EVP_PKEY`
/// may be used by many threads at once for signing, hence shared freely.
package final class SigningKey: @unchecked Sendable {
    package enum Algorithm: String, Sendable { case es256 = "ES256", rs256 = "RS256" }

    private let pointer: OpaquePointer
    package let algorithm: Algorithm

    private init(owning pointer: OpaquePointer) throws(CredentialError) {
        self.pointer = pointer
        if tidings_is_p256(pointer) == 1 {
            algorithm = .es256
        } else if tidings_is_rsa(pointer) == 1 {
            algorithm = .rs256
        } else {
            throw CredentialError("the key is neither P-256 nor RSA")
        }
    }

    deinit { EVP_PKEY_free(pointer) }

    package static func generate(_ algorithm: Algorithm) throws(CredentialError) -> SigningKey {
        guard let pointer = algorithm == .es256 ? tidings_ec_generate() : tidings_rsa_generate() else {
            throw CredentialError("cannot make a key")
        }
        return try SigningKey(owning: pointer)
    }

    /// Reads a private key: PEM, or the base64 body of one (a hub's `Token` property holds no header lines).
    package static func privateKey(_ text: String) throws(CredentialError) -> SigningKey {
        let pem =
            text.contains("-----BEGIN")
            ? text.replacing("\\n", with: "\n")
            : "-----BEGIN PRIVATE KEY-----\n\(wrapped(text))\n-----END PRIVATE KEY-----\n"
        return try read(pem, "the private key is not PEM (PKCS#8)") {
            tidings_read_private_key($0, nil)
        }
    }

    /// A key as VAPID writes it: the uncompressed point of P-256 (65 bytes) and, to sign, the scalar (32 bytes).
    package static func p256(
        point: [UInt8],
        scalar: [UInt8]? = nil
    ) throws(CredentialError) -> SigningKey {
        guard point.count == P256KeyPair.pointByteCount, point[0] == 4,
            scalar.map({ $0.count == P256KeyPair.scalarByteCount }) ?? true,
            let pointer = tidings_p256_key(point, scalar)
        else {
            throw CredentialError(
                "the key is not an uncompressed P-256 point of 65 bytes with its 32-byte scalar"
            )
        }
        return try SigningKey(owning: pointer)
    }

    package static func publicKey(_ pem: String) throws(CredentialError) -> SigningKey {
        try read(pem, "the public key is not PEM") { PEM_read_bio_PUBKEY($0, nil, nil, nil) }
    }

    /// PKCS#8 PEM.
    package func privateKeyPEM() throws(CredentialError) -> String {
        try write { PEM_write_bio_PrivateKey($0, pointer, nil, nil, 0, nil, nil) }
    }

    /// SubjectPublicKeyInfo PEM.
    package func publicKeyPEM() throws(CredentialError) -> String {
        try write { PEM_write_bio_PUBKEY($0, pointer) }
    }

    /// The JOSE form of a signature: r||s for ES256.
    package func sign(_ bytes: [UInt8]) throws(CredentialError) -> [UInt8] {
        guard let context = EVP_MD_CTX_new() else { throw CredentialError("out of memory") }
        defer { EVP_MD_CTX_free(context) }
        var count = 0
        guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, pointer) == 1,
            EVP_DigestSign(context, nil, &count, bytes, bytes.count) == 1
        else { throw CredentialError("cannot sign") }
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &signature, &count, bytes, bytes.count) == 1 else {
            throw CredentialError("cannot sign")
        }
        signature.removeLast(signature.count - count)
        return algorithm == .rs256 ? signature : try Self.joseForm(der: signature)
    }

    package func isValid(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        guard let native = algorithm == .rs256 ? signature : Self.derForm(jose: signature),
            EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, pointer) == 1
        else { return false }
        return EVP_DigestVerify(context, native, native.count, bytes, bytes.count) == 1
    }

    private static func wrapped(_ base64: String) -> String {
        let compact = Array(base64.utf8.filter { $0 > 0x20 })
        return stride(from: 0, to: compact.count, by: 64)
            .map { String(decoding: compact[$0..<min($0 + 64, compact.count)], as: UTF8.self) }.joined(
                separator: "\n"
            )
    }

    private static func read(
        _ pem: String,
        _ failure: String,
        _ parse: (OpaquePointer) -> OpaquePointer?
    ) throws(CredentialError) -> SigningKey {
        // The BIO reads the array's own memory, so it lives and ends inside.
        let pointer: OpaquePointer? = Array(pem.utf8).withUnsafeBytes { bytes in
            guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else {
                return nil
            }
            defer { BIO_free(bio) }
            return parse(bio)
        }
        guard let pointer else { throw CredentialError(failure) }
        return try SigningKey(owning: pointer)
    }

    private func write(_ print: (OpaquePointer) -> Int32) throws(CredentialError) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { throw CredentialError("out of memory") }
        defer { BIO_free(bio) }
        guard print(bio) == 1 else { throw CredentialError("cannot write the key") }
        var bytes: UnsafePointer<CChar>?
        let count = tidings_bio_bytes(bio, &bytes)
        return String(decoding: UnsafeRawBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// ECDSA-Sig-Value (RFC 3279 section 2.2.3) to r||s.
    private static func joseForm(der: [UInt8]) throws(CredentialError) -> [UInt8] {
        let signature = der.withUnsafeBufferPointer { buffer in
            var cursor = buffer.baseAddress
            return d2i_ECDSA_SIG(nil, &cursor, buffer.count)
        }
        guard let signature else { throw CredentialError("cannot read a signature") }
        defer { ECDSA_SIG_free(signature) }
        var joined = [UInt8](repeating: 0, count: 64)
        let written = joined.withUnsafeMutableBufferPointer { buffer -> Bool in
            guard let base = buffer.baseAddress else { return false }
            return BN_bn2binpad(ECDSA_SIG_get0_r(signature), base, 32) == 32
                && BN_bn2binpad(ECDSA_SIG_get0_s(signature), base + 32, 32) == 32
        }
        guard written else { throw CredentialError("cannot write a signature") }
        return joined
    }

    private static func derForm(jose: [UInt8]) -> [UInt8]? {
        guard jose.count == 64, let signature = ECDSA_SIG_new() else { return nil }
        defer { ECDSA_SIG_free(signature) }
        let r = BN_bin2bn(Array(jose[..<32]), 32, nil)
        let s = BN_bin2bn(Array(jose[32...]), 32, nil)
        // The signature owns r and s once this succeeds.
        guard ECDSA_SIG_set0(signature, r, s) == 1 else {
            BN_free(r)
            BN_free(s)
            return nil
        }
        var output: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(signature, &output)
        guard count > 0, let output else { return nil }
        defer { CRYPTO_free(output, #file, Int32(#line)) }
        return Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }
}

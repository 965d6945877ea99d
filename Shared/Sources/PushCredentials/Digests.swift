import CTidingsOpenSSL

/// Hashes, message authentication and randomness from OpenSSL.
package enum Digests {
    package static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        SHA256(bytes, bytes.count, &digest)
        return digest
    }

    /// MD5 (RFC 1321), for protocols that demand it as a checksum; it protects nothing.
    package static func md5(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 16)
        // Fails where MD5 is switched off (FIPS mode); the digest of zeros is then refused by whoever compares it.
        EVP_Digest(bytes, bytes.count, &digest, nil, EVP_md5(), nil)
        return digest
    }

    /// HMAC-SHA256 (RFC 2104).
    package static func hmacSHA256(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 32
        HMAC(EVP_sha256(), key, Int32(clamping: key.count), bytes, bytes.count, &digest, &count)
        return digest
    }

    /// Compares in time that depends on the length alone.
    package static func equal(_ left: [UInt8], _ right: [UInt8]) -> Bool {
        guard left.count == right.count else { return false }
        return CRYPTO_memcmp(left, right, left.count) == 0
    }

    /// Bytes that nobody can foresee.
    package static func random(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        precondition(RAND_bytes(&bytes, Int32(count)) == 1, "no randomness")
        return bytes
    }
}

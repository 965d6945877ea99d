import CTidingsOpenSSL

/// AES-128-GCM with a tag of 16 bytes and no further data (RFC 8188 section 2.1).
enum AES128GCM {
    static let tagByteCount = 16

    /// The ciphertext with its tag behind it.
    static func seal(_ bytes: [UInt8], key: [UInt8], nonce: [UInt8]) throws(CredentialError) -> [UInt8] {
        guard let context = context(key, nonce, 1) else {
            throw CredentialError("AES-128-GCM cannot be set up")
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: bytes.count + tagByteCount)
        let isSealed = output.withUnsafeMutableBufferPointer { buffer -> Bool in
            guard let base = buffer.baseAddress else { return false }
            var count: Int32 = 0
            return EVP_CipherUpdate(context, base, &count, bytes, Int32(bytes.count)) == 1
                && EVP_CipherFinal_ex(context, base + Int(count), &count) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context,
                    EVP_CTRL_AEAD_GET_TAG,
                    Int32(tagByteCount),
                    base + bytes.count
                ) == 1
        }
        guard isSealed else { throw CredentialError("AES-128-GCM failed") }
        return output
    }

    /// Nil when the tag is not that of these bytes under this key.
    static func open(_ sealed: [UInt8], key: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        guard sealed.count >= tagByteCount, let context = context(key, nonce, 0) else { return nil }
        defer {
            EVP_CIPHER_CTX_free(context)
            ERR_clear_error()
        }
        let byteCount = sealed.count - tagByteCount
        var tag = Array(sealed[byteCount...])
        // One byte more, so that an empty message has an address too.
        var output = [UInt8](repeating: 0, count: byteCount + 1)
        let isOpened = output.withUnsafeMutableBufferPointer { buffer -> Bool in
            guard let base = buffer.baseAddress else { return false }
            var count: Int32 = 0
            return EVP_CipherUpdate(context, base, &count, sealed, Int32(byteCount)) == 1
                && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagByteCount), &tag) == 1
                && EVP_CipherFinal_ex(context, base + Int(count), &count) == 1
        }
        guard isOpened else { return nil }
        output.removeLast()
        return output
    }

    private static func context(_ key: [UInt8], _ nonce: [UInt8], _ isSealing: Int32) -> OpaquePointer? {
        guard key.count == 16, nonce.count == 12, let context = EVP_CIPHER_CTX_new() else { return nil }
        guard EVP_CipherInit_ex(context, EVP_aes_128_gcm(), nil, key, nonce, isSealing) == 1 else {
            EVP_CIPHER_CTX_free(context)
            return nil
        }
        return context
    }
}

import CTidingsOpenSSL

/// Bytes at rest, sealed with AES-256-GCM (NIST SP 800-38D): a version byte, a random nonce of 12 bytes, the ciphertext and a tag of 16.
package enum SecretBox {
    package static let keyByteCount = 32
    private static let version: UInt8 = 1
    private static let nonceByteCount = 12
    private static let tagByteCount = 16

    /// - Parameter context: What the bytes belong to; they open only with the same.
    package static func seal(
        _ bytes: [UInt8],
        key: [UInt8],
        context: String
    ) throws(CredentialError) -> [UInt8] {
        let nonce = Digests.random(nonceByteCount)
        let cipher = try Cipher(key: key, nonce: nonce, isSealing: true)
        cipher.authenticate(Array(context.utf8))
        let sealed = cipher.update(bytes)
        var tag = [UInt8](repeating: 0, count: tagByteCount)
        guard cipher.finish(),
            EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_GET_TAG, Int32(tagByteCount), &tag) == 1
        else { throw CredentialError("AES-256-GCM failed") }
        return [version] + nonce + sealed + tag
    }

    /// Nil when the key or the context is another one, and for damaged bytes.
    package static func open(_ box: [UInt8], key: [UInt8], context: String) -> [UInt8]? {
        guard box.first == version, box.count >= 1 + nonceByteCount + tagByteCount,
            let cipher = try? Cipher(key: key, nonce: Array(box[1...nonceByteCount]), isSealing: false)
        else { return nil }
        cipher.authenticate(Array(context.utf8))
        let bytes = cipher.update(Array(box[(1 + nonceByteCount)..<(box.count - tagByteCount)]))
        var tag = Array(box.suffix(tagByteCount))
        guard EVP_CIPHER_CTX_ctrl(cipher.context, EVP_CTRL_AEAD_SET_TAG, Int32(tagByteCount), &tag) == 1,
            cipher.finish()
        else { return nil }
        return bytes
    }
}

/// Owns one cipher context.
private final class Cipher {
    let context: OpaquePointer

    init(key: [UInt8], nonce: [UInt8], isSealing: Bool) throws(CredentialError) {
        guard key.count == SecretBox.keyByteCount else {
            throw CredentialError("the key has \(key.count) bytes instead of 32")
        }
        guard let context = EVP_CIPHER_CTX_new() else { throw CredentialError("out of memory") }
        self.context = context
        guard EVP_CipherInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce, isSealing ? 1 : 0) == 1 else {
            throw CredentialError("AES-256-GCM cannot be set up")
        }
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    func authenticate(_ bytes: [UInt8]) {
        var count: Int32 = 0
        _ = EVP_CipherUpdate(context, nil, &count, bytes, Int32(bytes.count))
    }

    func update(_ bytes: [UInt8]) -> [UInt8] {
        var output = [UInt8](repeating: 0, count: bytes.count + 16)
        var count: Int32 = 0
        _ = EVP_CipherUpdate(context, &output, &count, bytes, Int32(bytes.count))
        return Array(output.prefix(Int(count)))
    }

    func finish() -> Bool {
        var rest = [UInt8](repeating: 0, count: 16)
        var count: Int32 = 0
        return EVP_CipherFinal_ex(context, &rest, &count) == 1
    }
}

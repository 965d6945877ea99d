/// The encryption of Web Push: `aes128gcm` (RFC 8188 and RFC 8291) in both directions, and reading the older `aesgcm`
/// (draft-ietf-webpush-encryption-04), which some senders still write.
package enum WebPushMessage {
    package static let saltByteCount = 16
    package static let authByteCount = 16
    /// Salt, record size, key length and key before the record, delimiter and tag around it.
    package static let overheadByteCount =
        16 + 4 + 1 + P256KeyPair.pointByteCount + 1 + AES128GCM.tagByteCount
    /// The body that every push service takes (RFC 8030 section 7.2).
    package static let bodyByteCountMax = 4096
    /// What fits into one record of such a body.
    package static let plaintextByteCountMax = bodyByteCountMax - overheadByteCount

    /// The receiver's part of a subscription.
    package struct Receiver: Sendable, Equatable {
        /// `p256dh`: an uncompressed point of 65 bytes.
        package let point: [UInt8]
        /// `auth`: 16 bytes.
        package let auth: [UInt8]

        /// Nil unless both have their lengths. That the point is on the curve shows when it is used.
        package init?(point: [UInt8], auth: [UInt8]) {
            guard point.count == P256KeyPair.pointByteCount, point[0] == 4, auth.count == authByteCount else {
                return nil
            }
            self.point = point
            self.auth = auth
        }
    }

    /// The body of a push, one record.
    ///
    /// - Parameters:
    ///   - sender: Fresh for each message, or for each send.
    ///   - salt: 16 bytes, fresh for each message.
    package static func encrypt(
        _ plaintext: [UInt8],
        to receiver: Receiver,
        sender: P256KeyPair,
        salt: [UInt8]
    ) throws(CredentialError) -> [UInt8] {
        precondition(salt.count == saltByteCount, "a salt has 16 bytes")
        guard plaintext.count <= plaintextByteCountMax else {
            throw CredentialError("the message has more than \(plaintextByteCountMax) bytes")
        }
        let secret = try sender.agree(with: receiver.point)
        let keys = Keys(
            secret,
            auth: receiver.auth,
            receiver: receiver.point,
            sender: sender.point,
            salt: salt
        )
        var record = plaintext
        record.append(2)
        var body = salt
        body.reserveCapacity(plaintext.count + overheadByteCount)
        body += [0, 0, UInt8(bodyByteCountMax >> 8), UInt8(bodyByteCountMax & 0xFF)]
        body.append(UInt8(P256KeyPair.pointByteCount))
        body += sender.point
        body += try AES128GCM.seal(record, key: keys.key, nonce: keys.nonce)
        return body
    }

    /// Why a message cannot be read.
    package struct Failure: Error, Equatable, Sendable, CustomStringConvertible {
        package let description: String

        package init(_ description: String) { self.description = description }
    }

    /// Reads an `aes128gcm` body (RFC 8188 section 2.1), also one of several records.
    package static func decrypt(
        _ body: [UInt8],
        with pair: P256KeyPair,
        auth: [UInt8]
    ) throws(Failure) -> [UInt8] {
        let headerCount = saltByteCount + 5
        guard body.count >= headerCount else { throw Failure("the header is cut off") }
        let recordSize = body[16..<20].reduce(0) { $0 << 8 | Int($1) }
        let keyEnd = headerCount + Int(body[20])
        guard body[20] == UInt8(P256KeyPair.pointByteCount), body.count >= keyEnd else {
            throw Failure("the header holds no key of 65 bytes")
        }
        guard recordSize > AES128GCM.tagByteCount + 1 else {
            throw Failure("the record size \(recordSize) is below 18")
        }
        let sender = Array(body[headerCount..<keyEnd])
        guard let secret = try? pair.agree(with: sender) else {
            throw Failure("the sender's key is not on P-256")
        }
        let keys = Keys(secret, auth: auth, receiver: pair.point, sender: sender, salt: Array(body[..<16]))
        var plaintext: [UInt8] = []
        var start = keyEnd
        var sequence: UInt64 = 0
        repeat {
            let end = min(start + recordSize, body.count)
            guard
                var record = AES128GCM.open(
                    Array(body[start..<end]),
                    key: keys.key,
                    nonce: keys.nonce(sequence)
                )
            else { throw Failure("record \(sequence) is not from the holder of these keys") }
            while record.last == 0 { record.removeLast() }
            guard record.popLast() == (end == body.count ? 2 : 1) else {
                throw Failure("record \(sequence) has no delimiter, or the message is cut off")
            }
            plaintext += record
            sequence += 1
            start = end
        } while start < body.count
        return plaintext
    }

    /// Reads an `aesgcm` body of one record.
    ///
    /// - Parameters:
    ///   - salt: From the `Encryption` header.
    ///   - sender: `dh` of the `Crypto-Key` header.
    package static func decryptLegacy(
        _ body: [UInt8],
        with pair: P256KeyPair,
        auth: [UInt8],
        salt: [UInt8],
        sender: [UInt8]
    ) throws(Failure) -> [UInt8] {
        guard salt.count == saltByteCount, let secret = try? pair.agree(with: sender) else {
            throw Failure("the salt has not 16 bytes, or the sender's key is not on P-256")
        }
        let input = Digests.hmacSHA256(
            key: Digests.hmacSHA256(key: auth, secret),
            Array("Content-Encoding: auth".utf8) + [0, 1]
        )
        let random = Digests.hmacSHA256(key: salt, input)
        let context = Array("P-256".utf8) + [0, 0, 65] + pair.point + [0, 65] + sender
        func derived(_ label: String, _ count: Int) -> [UInt8] {
            let info = Array("Content-Encoding: \(label)".utf8) + [0] + context + [1]
            return Array(Digests.hmacSHA256(key: random, info).prefix(count))
        }
        guard let record = AES128GCM.open(body, key: derived("aesgcm", 16), nonce: derived("nonce", 12)),
            record.count >= 2
        else { throw Failure("the record is not from the holder of these keys") }
        let padding = Int(record[0]) << 8 | Int(record[1])
        guard record.count >= 2 + padding, record[2..<(2 + padding)].allSatisfy({ $0 == 0 }) else {
            throw Failure("the padding is not zeros")
        }
        return Array(record[(2 + padding)...])
    }

    /// RFC 8291 section 3.4: what both ends derive from their shared secret.
    private struct Keys {
        let key: [UInt8]
        let nonce: [UInt8]

        init(_ secret: [UInt8], auth: [UInt8], receiver: [UInt8], sender: [UInt8], salt: [UInt8]) {
            let info = Array("WebPush: info".utf8) + [0] + receiver + sender + [1]
            let input = Digests.hmacSHA256(key: Digests.hmacSHA256(key: auth, secret), info)
            let random = Digests.hmacSHA256(key: salt, input)
            func derived(_ label: String, _ count: Int) -> [UInt8] {
                Array(
                    Digests.hmacSHA256(key: random, Array("Content-Encoding: \(label)".utf8) + [0, 1])
                        .prefix(count)
                )
            }
            key = derived("aes128gcm", 16)
            nonce = derived("nonce", 12)
        }

        /// RFC 8188 section 2.3: the nonce of a record is XORed with its number.
        func nonce(_ sequence: UInt64) -> [UInt8] {
            var nonce = nonce
            for index in 0..<8 { nonce[4 + index] ^= UInt8(truncatingIfNeeded: sequence >> (56 - 8 * index)) }
            return nonce
        }
    }
}

import CTidingsOpenSSL

/// A key pair on P-256 as raw bytes, for the key agreement of Web Push (RFC 8291 section 3.1) and for VAPID.
package struct P256KeyPair: Sendable, Equatable {
    package static let scalarByteCount = 32
    /// Uncompressed: 0x04, X, Y.
    package static let pointByteCount = 65

    /// The private scalar.
    package let scalar: [UInt8]
    /// The public point.
    package let point: [UInt8]

    /// The pair of a private scalar.
    package init(scalar: [UInt8]) throws(CredentialError) {
        var point = [UInt8](repeating: 0, count: Self.pointByteCount)
        guard scalar.count == Self.scalarByteCount, tidings_p256_public(scalar, &point) == 1 else {
            throw CredentialError("the private key is not a P-256 scalar of 32 bytes")
        }
        self.scalar = scalar
        self.point = point
    }

    /// A fresh pair.
    package static func generate() throws(CredentialError) -> P256KeyPair {
        // Out of the order's range with a chance of 2^-32 for each draw.
        for _ in 0..<4 {
            if let pair = try? P256KeyPair(scalar: Digests.random(scalarByteCount)) { return pair }
        }
        throw CredentialError("cannot make a key")
    }

    /// The secret shared with the owner of `peer` (SP 800-56A, the X coordinate).
    /// - Throws: When `peer` is not an uncompressed point on the curve.
    package func agree(with peer: [UInt8]) throws(CredentialError) -> [UInt8] {
        var secret = [UInt8](repeating: 0, count: 32)
        guard peer.count == Self.pointByteCount, peer[0] == 4, tidings_p256_agree(scalar, peer, &secret) == 1
        else { throw CredentialError("the public key is not an uncompressed point on P-256") }
        return secret
    }
}

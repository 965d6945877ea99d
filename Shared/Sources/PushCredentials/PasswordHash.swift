import CTidingsOpenSSL
import HTTPMessages

/// A salted scrypt hash of a password (RFC 7914) as text: `scrypt$<N>$<r>$<p>$<salt>$<hash>`, base64url.
///
/// One check takes tens of milliseconds and 16 MiB: never on an event loop.
package enum PasswordHash {
    private static let cost = UInt64(1 << 14), blockSize = UInt64(8), parallelism = UInt64(1)
    private static let memoryByteCountMax = UInt64(64 << 20)

    package static func make(_ password: String) throws(CredentialError) -> String {
        let salt = Digests.random(16)
        return text(salt, try derive(password, salt, cost, blockSize, parallelism))
    }

    /// A hash of no password, which costs as much to check as any other.
    package static func decoy() -> String { text(Digests.random(16), Digests.random(32)) }

    private static func text(_ salt: [UInt8], _ hash: [UInt8]) -> String {
        "scrypt$\(cost)$\(blockSize)$\(parallelism)$\(Base64.encodeURL(salt))$\(Base64.encodeURL(hash))"
    }

    package static func verify(_ password: String, _ stored: String) -> Bool {
        let parts = stored.split(separator: "$")
        guard parts.count == 6, parts[0] == "scrypt", let n = UInt64(parts[1]), let r = UInt64(parts[2]),
            let p = UInt64(parts[3]),
            let salt = Base64.decode(parts[4]), let expected = Base64.decode(parts[5]),
            let hash = try? derive(password, salt, n, r, p)
        else { return false }
        return Digests.equal(hash, expected)
    }

    private static func derive(
        _ password: String,
        _ salt: [UInt8],
        _ n: UInt64,
        _ r: UInt64,
        _ p: UInt64
    ) throws(CredentialError) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: 32)
        let bytes = password.utf8.map { CChar(bitPattern: $0) }
        guard
            EVP_PBE_scrypt(bytes, bytes.count, salt, salt.count, n, r, p, memoryByteCountMax, &key, key.count)
                == 1
        else {
            throw CredentialError("scrypt failed")
        }
        return key
    }
}

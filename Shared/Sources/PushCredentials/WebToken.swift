import HTTPMessages
package import JSONBytes

/// A JSON Web Token in compact form (RFC 7519), signed with ES256 or RS256.
package struct WebToken: Sendable {
    package let header: JSONObject
    package let claims: JSONObject
    private let signedPart: [UInt8]
    private let signature: [UInt8]

    /// The longest token that is read.
    package static let byteCountMax = 8192

    package static func sign(
        header: JSONObject,
        claims: JSONObject,
        with key: SigningKey
    ) throws(CredentialError) -> String {
        let parts = [header, claims].map { Base64.encodeURL(JSONValue.object($0).serialized()) }
        let text = parts.joined(separator: ".")
        return text + "." + Base64.encodeURL(try key.sign(Array(text.utf8)))
    }

    /// Reads a token without trusting it; nil when it is malformed.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.byteCountMax, parts.count == 3,
            let headerBytes = Base64.decode(parts[0]), let claimBytes = Base64.decode(parts[1]),
            let signature = Base64.decode(parts[2]),
            case .object(let header)? = try? JSONValue(parsing: headerBytes),
            case .object(let claims)? = try? JSONValue(parsing: claimBytes)
        else { return nil }
        self.header = header
        self.claims = claims
        self.signature = signature
        signedPart = Array("\(parts[0]).\(parts[1])".utf8)
    }

    /// True when `key` made the signature and the header names that key's algorithm.
    package func isSigned(by key: SigningKey) -> Bool {
        header["alg"]?.stringValue == key.algorithm.rawValue && key.isValid(signature, of: signedPart)
    }

    /// A claim as whole seconds. Libraries write `iat` as an integer, a float or a string of digits.
    package func seconds(_ name: String) -> Int64? {
        switch claims[name] {
        case .number(let text)?, .string(let text)?: Int64(text.prefix { $0 != "." })
        default: nil
        }
    }
}

import CTidingsOpenSSL

/// The digest of the WebSocket opening handshake (RFC 6455 section 4.2.2), which proves no more than that the peer
/// speaks the protocol.
package enum HandshakeDigest {
    package static let webSocketSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    package static func sha1(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 20)
        SHA1(bytes, bytes.count, &digest)
        return digest
    }
}

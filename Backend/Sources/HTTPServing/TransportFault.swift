/// How a connection misbehaves on purpose, in place of a good answer or with it: what a service under development is asked to do so
/// that its clients can be tried.
package enum TransportFault: Sendable, Equatable {
    /// Never answered; the connection stays.
    case hang
    /// HTTP/2: RST_STREAM with INTERNAL_ERROR (RFC 9113 section 6.4). HTTP/1.1: the connection is closed.
    case reset
    /// The connection is closed without an answer.
    case close
    /// Answered, with a GOAWAY that names the last stream that was begun (RFC 9113 section 6.8); HTTP/1.1: `Connection: close`.
    case goAway
    /// Answered after SETTINGS with another number of concurrent streams; nothing for HTTP/1.1.
    case streamLimit(Int)
}

/// The bounds of a server. What happens at each: a refusal with the status named here, then the connection closes.
package struct ServerLimits: Sendable {
    /// Request line and fields together; more is 431.
    package var headByteCountMax = 16 << 10
    /// Field lines; more is 431.
    package var fieldCountMax = 100
    /// The request target; more is 414.
    package var targetByteCountMax = 8 << 10
    /// Chunk size line or trailer section; more is 400.
    package var chunkLineByteCountMax = 1 << 10
    /// Body bytes that wait for a handler to take them; then the socket is not read.
    package var bodyBufferByteCountMax = 256 << 10
    /// Body bytes that are read and dropped when a handler answered without them; more closes the connection.
    package var discardByteCountMax = 1 << 20
    /// Concurrent HTTP/2 streams per connection; more are refused.
    package var streamCountMax = 250
    /// Concurrent streams of a new connection, until the handler allows ``streamCountMax``; nil for that from the start.
    package var firstStreamCount: Int?
    /// Connections per server; more wait in the kernel's queue.
    package var connectionCountMax = 19_000
    /// From the first byte of a head to its last: 408.
    package var headTimeout = Duration.seconds(10)
    /// Between two pieces of a body: 408.
    package var bodyTimeout = Duration.seconds(30)
    /// Between requests on a connection; then it closes.
    package var idleTimeout = Duration.seconds(75)
    /// For the peer to take what is queued for it.
    package var writeTimeout = Duration.seconds(30)
    /// One WebSocket message; more closes with 1009.
    package var webSocketMessageByteCountMax = 64 << 10

    package init() {}

    /// How often deadlines are looked at: a quarter of the shortest, at most a second.
    var sweepInterval: Duration {
        let shortest = min(headTimeout, bodyTimeout, idleTimeout, writeTimeout)
        return max(.milliseconds(5), min(.seconds(1), shortest / 4))
    }
}

import Synchronization

/// What a handler remembers of a connection, for rules that span its requests; it ends with the connection.
package final class ConnectionMemory: Sendable {
    /// Concurrent streams once the handler lets them be (``HTTPResponse/fault``).
    package let streamCountMax: Int
    private let stored = Mutex<(any Sendable)?>(nil)

    package init(streamCountMax: Int) { self.streamCountMax = streamCountMax }

    /// - Parameter first: What is remembered before the first call.
    package func update<Value: Sendable, Result: Sendable>(
        _ first: Value,
        _ body: (inout Value) -> Result
    ) -> Result {
        stored.withLock { stored in
            var value = stored as? Value ?? first
            defer { stored = value }
            return body(&value)
        }
    }
}

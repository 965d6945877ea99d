import Synchronization

/// A body that a handler could not have.
package enum RequestBodyError: Error, Equatable, Sendable {
    /// Longer than the handler allows.
    case tooLarge(byteCountMax: Int)
    /// The connection ended, or its bytes were not a body.
    case interrupted
}

/// The body of a request while it arrives. One handler reads it, from any isolation; the connection feeds it.
package final class RequestBody: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var isComplete = false
        var failure: RequestBodyError?
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    /// Tells the connection that bytes are wanted; it resumes reading and sends 100 Continue when it was asked to.
    private let onDemand: @Sendable () -> Void
    /// The declared length, if there is one.
    package let declaredByteCount: Int?

    init(declaredByteCount: Int?, onDemand: @escaping @Sendable () -> Void) {
        self.declaredByteCount = declaredByteCount
        self.onDemand = onDemand
    }

    /// A body that is there already.
    package static func whole(_ bytes: [UInt8]) -> RequestBody {
        let body = RequestBody(declaredByteCount: bytes.count, onDemand: {})
        body.feed(bytes, isLast: true)
        return body
    }

    /// The bytes that arrived since the last call; waits for some. Nil at the end.
    package func next() async throws(RequestBodyError) -> [UInt8]? {
        while true {
            let (bytes, failure, isComplete) = state.withLock { state in
                let bytes = state.bytes
                state.bytes = []
                return (bytes, state.failure, state.isComplete)
            }
            if !bytes.isEmpty {
                if !isComplete { onDemand() }
                return bytes
            }
            if let failure { throw failure }
            if isComplete { return nil }
            onDemand()
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if !state.bytes.isEmpty || state.isComplete || state.failure != nil { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }

    /// The whole body.
    package func collect(upTo byteCountMax: Int) async throws(RequestBodyError) -> [UInt8] {
        if let declaredByteCount, declaredByteCount > byteCountMax {
            throw .tooLarge(byteCountMax: byteCountMax)
        }
        var whole: [UInt8] = []
        while let bytes = try await next() {
            if whole.isEmpty { whole = bytes } else { whole += bytes }
            guard whole.count <= byteCountMax else { throw .tooLarge(byteCountMax: byteCountMax) }
        }
        return whole
    }

    /// Bytes that no handler took yet.
    var bufferedByteCount: Int { state.withLock { $0.bytes.count } }

    func feed(_ bytes: [UInt8], isLast: Bool) {
        let waiter = state.withLock { state in
            if state.bytes.isEmpty { state.bytes = bytes } else { state.bytes += bytes }
            state.isComplete = state.isComplete || isLast
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func fail() {
        let waiter = state.withLock { state in
            if !state.isComplete { state.failure = .interrupted }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}

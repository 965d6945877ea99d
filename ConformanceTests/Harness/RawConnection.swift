import EventLoops
import HTTPMessages
import Synchronization
import TLSTransport

/// A plain TCP connection for requests that no library would send.
package enum RawConnection {
    /// Real time, after which the answer so far is returned.
    private static let patience = Duration.seconds(60)

    /// Sends bytes in clear and returns everything that comes back until the server closes.
    package static func exchange(_ bytes: [UInt8], with address: String) async throws -> String {
        guard let url = HTTPURL(address) else { throw WorldFailure("'\(address)' is not a URL") }
        let loop = EventLoopGroup.shared.next()
        let handler = Collector(bytes)
        // On the loop: the shared pool may be busy with other tests while the server's deadline runs.
        try await Task(executorPreference: loop) {
            try await loop.connect(
                host: "127.0.0.1",
                port: url.port,
                tls: nil,
                handler: { handler },
                attach: { _, stream in handler.stream = stream }
            )
        }.value
        let timeout = Task {
            try await Task.sleep(for: patience)
            loop.execute { handler.stream?.close(.deadline) }
        }
        defer { timeout.cancel() }
        return String(decoding: await handler.answer(), as: UTF8.self)
    }
}

/// Loop-confined but for the answer.
private final class Collector: StreamConnectionHandler, @unchecked Sendable {
    private let request: [UInt8]
    private var received: [UInt8] = []
    var stream: StreamConnection?
    private struct Answer {
        var bytes: [UInt8]?
        var waiter: CheckedContinuation<[UInt8], Never>?
    }
    private let state = Mutex(Answer())

    init(_ request: [UInt8]) { self.request = request }

    func answer() async -> [UInt8] {
        await withCheckedContinuation { continuation in
            let bytes = state.withLock { state in
                if state.bytes == nil { state.waiter = continuation }
                return state.bytes
            }
            if let bytes { continuation.resume(returning: bytes) }
        }
    }

    func streamOpened(applicationProtocol: String?) { stream?.write(request) }
    func streamReceived(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { received.append(contentsOf: $0) }
    }
    func streamEnded() { stream?.close(.ended) }

    func streamClosed(_ reason: StreamCloseReason) {
        stream = nil
        let bytes = received
        let waiter = state.withLock { state in
            state.bytes = bytes
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: bytes)
    }
}

import EventLoops
import HTTPMessages
import Synchronization
package import TLSTransport

/// A plain TCP or TLS connection for requests that no library would send.
package enum RawConnection {
    /// Real time, after which the exchange has failed.
    private static let patience = Duration.seconds(60)

    /// Sends bytes, in clear unless `tls` is given, and returns everything that comes back until the server closes.
    package static func exchange(
        _ bytes: [UInt8],
        with address: String,
        tls: TLSContext? = nil
    ) async throws -> String {
        String(decoding: try await self.bytes(bytes, with: address, tls: tls), as: UTF8.self)
    }

    package static func bytes(
        _ bytes: [UInt8],
        with address: String,
        tls: TLSContext? = nil
    ) async throws -> [UInt8] {
        guard let url = HTTPURL(address) else { throw WorldFailure("'\(address)' is not a URL") }
        let loop = EventLoopGroup.shared.next()
        let handler = Collector(bytes)
        // On the loop: the shared pool may be busy with other tests while the server's deadline runs.
        try await Task(executorPreference: loop) {
            try await loop.connect(
                host: "127.0.0.1",
                port: url.port,
                tls: tls,
                handler: { handler },
                attach: { _, stream in handler.stream = stream }
            )
        }.value
        let timeout = Task {
            try await Task.sleep(for: patience)
            loop.execute { handler.stream?.close(.deadline) }
        }
        defer { timeout.cancel() }
        let (bytes, reason) = await handler.answer()
        guard reason != .deadline else {
            throw WorldFailure("the server did not close; it sent \(bytes.count) bytes")
        }
        return bytes
    }
}

/// Loop-confined but for the answer.
private final class Collector: StreamConnectionHandler, @unchecked Sendable {
    private let request: [UInt8]
    private var received: [UInt8] = []
    var stream: StreamConnection?
    private struct Answer {
        var result: ([UInt8], StreamCloseReason)?
        var waiter: CheckedContinuation<([UInt8], StreamCloseReason), Never>?
    }
    private let state = Mutex(Answer())

    init(_ request: [UInt8]) { self.request = request }

    func answer() async -> ([UInt8], StreamCloseReason) {
        await withCheckedContinuation { continuation in
            let result = state.withLock { state in
                if state.result == nil { state.waiter = continuation }
                return state.result
            }
            if let result { continuation.resume(returning: result) }
        }
    }

    func streamOpened(applicationProtocol: String?) { stream?.write(request) }
    func streamReceived(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { received.append(contentsOf: $0) }
    }
    func streamEnded() { stream?.close(.ended) }

    func streamClosed(_ reason: StreamCloseReason) {
        stream = nil
        let result = (received, reason)
        let waiter = state.withLock { state in
            state.result = result
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: result)
    }
}

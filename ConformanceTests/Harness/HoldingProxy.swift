import Glibc
import HTTPMessages
import Synchronization

/// A TCP proxy in front of a service that, when told, takes what clients send and passes it on no more. Answers and pushes still pass:
/// so a test stands between what a client has done and what the service has heard of it. Threads of its own, blocking calls.
package final class HoldingProxy: Sendable {
    private let listener: Int32
    private let targetPort: Int
    private let state = Mutex((isHolding: false, descriptors: [Int32]()))
    /// `https://localhost:…`, for the service's certificate.
    package let url: String

    /// - Parameter url: The service, on 127.0.0.1.
    package init(before url: String) throws {
        guard let target = HTTPURL(url) else { throw WorldFailure("'\(url)' is not a URL") }
        targetPort = target.port
        let port: Int
        (listener, port) = try LoopbackSocket.listen()
        self.url = "\(target.scheme)://localhost:\(port)"
        let listener = listener
        Programs.detach { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 { serve(client) }
        }
    }

    /// From now on nothing that clients send reaches the service.
    package func hold() { state.withLock { $0.isHolding = true } }

    /// Ends the listener and every connection.
    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        let descriptors = state.withLock { state in
            defer { state.descriptors = [] }
            return state.descriptors
        }
        for descriptor in descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func serve(_ client: Int32) {
        guard let server = try? LoopbackSocket.connect(port: targetPort) else {
            close(client)
            return
        }
        state.withLock { $0.descriptors += [client, server] }
        Programs.detach { self.copy(client, server, isUpstream: true) }
        Programs.detach { self.copy(server, client, isUpstream: false) }
    }

    private func copy(_ source: Int32, _ target: Int32, isUpstream: Bool) {
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while case let count = read(source, &buffer, buffer.count), count > 0 {
            if isUpstream, state.withLock({ $0.isHolding }) { continue }
            var sent = 0
            while sent < count {
                let step = buffer.withUnsafeBytes {
                    send(target, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard step > 0 else { break }
                sent += step
            }
        }
        // The descriptors stay open until the process ends, so that no number is used again under another thread.
        shutdown(target, Int32(SHUT_RDWR))
    }
}

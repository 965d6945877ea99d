import CTidingsUV
import Glibc

/// A numeric IPv4 or IPv6 address with its port, or the path of a Unix socket.
package struct SocketAddress: Sendable {
    /// A `sockaddr_storage`.
    private let storage: [UInt8]
    private let length: UInt32

    /// A numeric address; nil for a name.
    package init?(host: String, port: Int) {
        guard let port = UInt16(exactly: port) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(tidings_uv_storage_size()))
        length = bytes.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { tidings_uv_numeric_address(host, Int32(port), $0) } ?? 0
        }
        guard length > 0 else { return nil }
        storage = bytes
    }

    /// A Unix socket; nil when the path is longer than 107 bytes.
    package init?(unixPath: String) {
        var bytes = [UInt8](repeating: 0, count: Int(tidings_uv_storage_size()))
        length = bytes.withUnsafeMutableBytes { buffer in
            buffer.baseAddress.map { tidings_uv_unix_address(unixPath, $0) } ?? 0
        }
        guard length > 0 else { return nil }
        storage = bytes
    }

    init(copying bytes: UnsafeRawBufferPointer) {
        storage = Array(bytes)
        length = UInt32(bytes.count)
    }

    /// A listening descriptor, not blocking.
    package func listen(backlog: Int = 4096) throws(SystemError) -> Int32 {
        let code = withAddress { tidings_uv_listen($0, length, Int32(backlog)) }
        guard code >= 0 else { throw SystemError(code: code, call: "listen") }
        return code
    }

    /// A descriptor whose connection is under way.
    package func connect() throws(SystemError) -> Int32 {
        let code = withAddress { tidings_uv_connect($0, length) }
        guard code >= 0 else { throw SystemError(code: code, call: "connect") }
        return code
    }

    private func withAddress(_ body: (UnsafeRawPointer) -> Int32) -> Int32 {
        storage.withUnsafeBytes { buffer in buffer.baseAddress.map(body) ?? -EINVAL }
    }

    /// The port that a bound descriptor has.
    package static func localPort(of descriptor: Int32) -> Int { Int(tidings_uv_local_port(descriptor)) }
}

extension EventLoop {
    /// The addresses of a host, numeric or by name, in the order that the resolver gives them.
    package func resolve(host: String, port: Int) async throws -> [SocketAddress] {
        if let numeric = SocketAddress(host: host, port: port) { return [numeric] }
        return try await withCheckedThrowingContinuation { continuation in
            execute { [self] in
                let request = UnsafeMutablePointer<uv_getaddrinfo_t>.allocate(capacity: 1)
                let pending = PendingLookup(continuation: continuation)
                request.pointee.data = Unmanaged.passRetained(pending).toOpaque()
                let code = tidings_uv_get_address(handle, request, lookupEnded, host, String(port))
                if code != 0 {
                    Unmanaged.passUnretained(pending).release()
                    request.deallocate()
                    continuation.resume(throwing: SystemError(code: code, call: "uv_getaddrinfo"))
                }
            }
        }
    }

    /// Runs blocking work on libuv's bounded worker pool (4 threads).
    package func runBlocking<Result: Sendable>(
        _ body: @escaping @Sendable () throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let work = BlockingWork { continuation.resume(with: Swift.Result(catching: body)) }
            execute { [self] in
                let request = UnsafeMutablePointer<uv_work_t>.allocate(capacity: 1)
                request.pointee.data = Unmanaged.passRetained(work).toOpaque()
                uv_queue_work(
                    handle,
                    request,
                    { request in
                        guard let context = request?.pointee.data else { return }
                        Unmanaged<BlockingWork>.fromOpaque(context).takeUnretainedValue().body()
                    },
                    { request, _ in
                        guard let request, let context = request.pointee.data else { return }
                        Unmanaged<BlockingWork>.fromOpaque(context).release()
                        request.deallocate()
                    }
                )
            }
        }
    }
}

private final class BlockingWork: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private final class PendingLookup: Sendable {
    let continuation: CheckedContinuation<[SocketAddress], any Error>
    init(continuation: CheckedContinuation<[SocketAddress], any Error>) { self.continuation = continuation }
}

private func lookupEnded(
    _ request: UnsafeMutablePointer<uv_getaddrinfo_t>?,
    _ status: Int32,
    _ first: UnsafeMutablePointer<addrinfo>?
) {
    guard let request, let context = request.pointee.data else { return }
    let pending = Unmanaged<PendingLookup>.fromOpaque(context).takeRetainedValue()
    defer {
        uv_freeaddrinfo(first)
        request.deallocate()
    }
    guard status == 0 else {
        return pending.continuation.resume(throwing: SystemError(code: status, call: "name look-up"))
    }
    var addresses: [SocketAddress] = []
    var cursor = first
    while let info = cursor {
        if let address = tidings_uv_address(info) {
            addresses.append(
                SocketAddress(copying: .init(start: address, count: Int(tidings_uv_address_length(info))))
            )
        }
        cursor = info.pointee.ai_next
    }
    pending.continuation.resume(returning: addresses)
}

package enum Sockets {
    /// A descriptor that is not blocking, or a negative errno.
    package static func accept(_ listener: Int32) -> Int32 { tidings_uv_accept(listener) }
}

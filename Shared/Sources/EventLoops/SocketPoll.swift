import CTidingsUV
import Glibc

/// Readiness of one descriptor. Loop-confined; closes a descriptor that it owns after libuv let go of it.
package final class SocketPoll {
    package let descriptor: Int32
    private let isOwner: Bool
    private var poll: UnsafeMutablePointer<uv_poll_t>?
    private var watched: Int32 = 0
    /// libuv stopped by itself; ``watched`` is not in force.
    private var isHalted = false
    /// Called with what is possible now; errors count as readable, so that the next read reports them.
    package var onReady: ((_ readable: Bool, _ writable: Bool) -> Void)?

    /// - Parameter isOwner: False for a descriptor that a C library closes; call ``close()`` before it does.
    package init(descriptor: Int32, on loop: EventLoop, isOwner: Bool = true) throws(SystemError) {
        loop.preconditionOnLoop()
        self.descriptor = descriptor
        self.isOwner = isOwner
        let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        let code = uv_poll_init_socket(loop.handle, poll, descriptor)
        guard code == 0 else {
            poll.deallocate()
            if isOwner { Glibc.close(descriptor) }
            throw SystemError(code: code, call: "uv_poll_init_socket")
        }
        poll.pointee.data = Unmanaged.passRetained(self).toOpaque()
        self.poll = poll
    }

    package func watch(readable: Bool, writable: Bool) {
        guard let poll else { return }
        let events =
            (readable ? Int32(UV_READABLE.rawValue) : 0) | (writable ? Int32(UV_WRITABLE.rawValue) : 0)
        guard events != watched || isHalted else { return }
        isHalted = false
        watched = events
        if events == 0 { uv_poll_stop(poll) } else { uv_poll_start(poll, events, pollReady) }
    }

    /// Stops watching and gives the descriptor to the caller, who closes it.
    package func release() -> Int32 {
        letGo(closesDescriptor: false)
        return descriptor
    }

    /// Stops watching, and closes the descriptor if it is owned.
    package func close() { letGo(closesDescriptor: isOwner) }

    private func letGo(closesDescriptor: Bool) {
        onReady = nil
        guard let poll else { return }
        self.poll = nil
        // Stopped before the descriptor is closed, or the kernel could hand its number to a new socket while
        // libuv still watches it.
        uv_poll_stop(poll)
        if closesDescriptor { Glibc.close(descriptor) }
        UnsafeMutableRawPointer(poll).withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            uv_close(handle) { handle in
                guard let handle, let context = handle.pointee.data else { return }
                Unmanaged<SocketPoll>.fromOpaque(context).release()
                UnsafeMutableRawPointer(handle).deallocate()
            }
        }
    }

    fileprivate func ready(status: Int32, events: Int32) {
        if status < 0 {
            // libuv has stopped watching (uv_poll reports POLLERR once). One read may return what came before a reset and not
            // the reset itself: whoever is still interested is called again, until a read or write fails.
            isHalted = true
            onReady?(true, true)
            if isHalted, let poll, watched != 0 {
                isHalted = false
                uv_poll_start(poll, watched, pollReady)
            }
        } else {
            onReady?(events & Int32(UV_READABLE.rawValue) != 0, events & Int32(UV_WRITABLE.rawValue) != 0)
        }
    }
}

private func pollReady(_ poll: UnsafeMutablePointer<uv_poll_t>?, _ status: Int32, _ events: Int32) {
    guard let context = poll?.pointee.data else { return }
    Unmanaged<SocketPoll>.fromOpaque(context).takeUnretainedValue().ready(status: status, events: events)
}

/// A failed system or libuv call.
package struct SystemError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Negative errno, as libuv has it.
    package let code: Int32
    package let call: String

    package init(code: Int32, call: String) {
        self.code = code
        self.call = call
    }

    package var description: String { "\(call): \(String(cString: uv_strerror(code)))" }
}

import CTidingsUV

/// Readiness of a descriptor that a C library owns and closes itself. Loop-confined.
package final class ForeignPoll {
    private var poll: UnsafeMutablePointer<uv_poll_t>?
    private var watched: Int32 = 0
    private let onReady: (_ readable: Bool, _ writable: Bool) -> Void

    package init(
        _ descriptor: Int32,
        on loop: EventLoop,
        onReady: @escaping (_ readable: Bool, _ writable: Bool) -> Void
    ) throws(SystemError) {
        self.onReady = onReady
        let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        let code = uv_poll_init_socket(loop.handle, poll, descriptor)
        guard code == 0 else {
            poll.deallocate()
            throw SystemError(code: code, call: "uv_poll_init_socket")
        }
        poll.pointee.data = Unmanaged.passRetained(self).toOpaque()
        self.poll = poll
    }

    package func watch(readable: Bool, writable: Bool) {
        guard let poll else { return }
        let events =
            (readable ? Int32(UV_READABLE.rawValue) : 0) | (writable ? Int32(UV_WRITABLE.rawValue) : 0)
        start(poll, events)
    }

    private func start(_ poll: UnsafeMutablePointer<uv_poll_t>, _ events: Int32) {
        watched = events
        uv_poll_start(poll, events) { poll, status, events in
            guard let context = poll?.pointee.data else { return }
            let owner = Unmanaged<ForeignPoll>.fromOpaque(context).takeUnretainedValue()
            owner.ready(status, events)
        }
    }

    private func ready(_ status: Int32, _ events: Int32) {
        // An error counts as ready for both: the library's next call reports it. libuv has then stopped watching, which the
        // library does not know.
        let wanted = watched
        if status < 0 { watched = 0 }
        onReady(
            status < 0 || events & Int32(UV_READABLE.rawValue) != 0,
            status < 0 || events & Int32(UV_WRITABLE.rawValue) != 0
        )
        if status < 0, watched == 0, wanted != 0, let poll { start(poll, wanted) }
    }

    /// Must run before the library closes the descriptor.
    package func stop() {
        guard let poll else { return }
        self.poll = nil
        uv_poll_stop(poll)
        UnsafeMutableRawPointer(poll).withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            uv_close(handle) { handle in
                guard let handle, let context = handle.pointee.data else { return }
                Unmanaged<ForeignPoll>.fromOpaque(context).release()
                UnsafeMutableRawPointer(handle).deallocate()
            }
        }
    }
}

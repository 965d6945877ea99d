import CTidingsUV

/// A timer on a loop's monotonic clock. Made, cancelled and fired on the loop's thread.
package final class LoopTimer {
    private var timer: UnsafeMutablePointer<uv_timer_t>?
    private var body: (() -> Void)?
    private let repeats: Bool

    /// Calls `body` after `delay`, and then every `interval` when one is given.
    package init(
        on loop: EventLoop,
        after delay: Duration,
        every interval: Duration? = nil,
        _ body: @escaping () -> Void
    ) {
        loop.preconditionOnLoop()
        self.body = body
        repeats = interval != nil
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop.handle, timer)
        // libuv holds the timer until its close callback: https://docs.libuv.org/en/v1.x/handle.html#c.uv_close
        timer.pointee.data = Unmanaged.passRetained(self).toOpaque()
        self.timer = timer
        uv_timer_start(
            timer,
            timerFired,
            delay.wholeMilliseconds,
            interval.map { max(1, $0.wholeMilliseconds) } ?? 0
        )
    }

    package func cancel() {
        body = nil
        guard let timer else { return }
        self.timer = nil
        UnsafeMutableRawPointer(timer).withMemoryRebound(to: uv_handle_t.self, capacity: 1) { handle in
            uv_close(handle) { handle in
                guard let handle, let context = handle.pointee.data else { return }
                Unmanaged<LoopTimer>.fromOpaque(context).release()
                UnsafeMutableRawPointer(handle).deallocate()
            }
        }
    }

    fileprivate func fire() {
        let body = body
        if !repeats { cancel() }
        body?()
    }
}

private func timerFired(_ timer: UnsafeMutablePointer<uv_timer_t>?) {
    guard let context = timer?.pointee.data else { return }
    Unmanaged<LoopTimer>.fromOpaque(context).takeUnretainedValue().fire()
}

extension Duration {
    /// Rounded up; negative durations count as zero.
    package var wholeMilliseconds: UInt64 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        return UInt64(seconds) * 1000 + UInt64((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

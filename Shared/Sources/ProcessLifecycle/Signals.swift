import Glibc

/// The signals that `main` waits for. Libraries never install handlers, since many Worlds share a process.
package enum ProcessSignal: Sendable { case terminate, reload }

package enum Signals {
    /// Where the handler writes the number of a signal. Set once, before the handlers are there.
    nonisolated(unsafe) private static var written: Int32 = -1

    /// Catches SIGTERM, SIGINT and SIGHUP, ignores SIGPIPE, and returns what arrives. A second SIGTERM or SIGINT has its default
    /// action, so that nobody waits for a drain that they do not want. To be called once, by `main`.
    ///
    /// By handlers and not by a mask: a mask holds only for threads that start afterwards, and Swift's pool is there before `main`.
    package static func stream() -> AsyncStream<ProcessSignal> {
        signal(SIGPIPE, SIG_IGN)
        let (stream, continuation) = AsyncStream.makeStream(of: ProcessSignal.self)
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "no pipe for signals")
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        let read = ends[0]
        written = ends[1]
        for number in [SIGTERM, SIGINT, SIGHUP] {
            var action = sigaction()
            action.sa_flags = SA_RESTART
            // Only what signal-safety(7) allows: write(2), and errno as it was.
            action.__sigaction_handler.sa_handler = { number in
                let before = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = Glibc.write(Signals.written, &byte, 1)
                errno = before
            }
            sigaction(number, &action, nil)
        }
        Threads.start {
            var byte: UInt8 = 0
            while true {
                let count = Glibc.read(read, &byte, 1)
                if count == 0 || count < 0 && errno != EINTR { return }
                guard count == 1 else { continue }
                if Int32(byte) == SIGHUP {
                    continuation.yield(.reload)
                } else {
                    signal(SIGTERM, SIG_DFL)
                    signal(SIGINT, SIG_DFL)
                    continuation.yield(.terminate)
                }
            }
        }
        return stream
    }
}

package enum Threads {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a detached thread for blocking work that never belongs on a loop or on the shared pool.
    package static func start(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        let code = pthread_create(
            &thread,
            nil,
            { context in
                guard let context else { return nil }
                Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
                return nil
            },
            context
        )
        precondition(code == 0, "cannot start a thread: \(String(cString: strerror(code)))")
        pthread_detach(thread)
    }
}

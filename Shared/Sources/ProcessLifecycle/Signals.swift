import Glibc

/// The signals that `main` waits for. Libraries never install handlers, since many Worlds share a process.
package enum ProcessSignal: Sendable { case terminate, reload }

package enum Signals {
    /// Blocks SIGTERM, SIGINT and SIGHUP in this thread and all that it starts, ignores SIGPIPE, and returns what
    /// arrives. Call before any other thread exists, or they would take the signal's default action.
    package static func stream() -> AsyncStream<ProcessSignal> {
        signal(SIGPIPE, SIG_IGN)
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        pthread_sigmask(SIG_BLOCK, &set, nil)
        let (stream, continuation) = AsyncStream.makeStream(of: ProcessSignal.self)
        let waiting = set
        Threads.start {
            var waiting = waiting
            while true {
                var number: Int32 = 0
                guard sigwait(&waiting, &number) == 0 else { continue }
                continuation.yield(number == SIGHUP ? .reload : .terminate)
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

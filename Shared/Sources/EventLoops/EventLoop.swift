import CTidingsUV
import Glibc
import Synchronization

/// One thread that runs a libuv loop: readiness, timers, name look-up, and the Swift jobs of what it owns.
///
/// It is a serial executor and a task executor, so an actor can be pinned to it and a handler started with
/// `Task.immediate(executorPreference:)` stays on it until it really suspends. Loops live as long as the
/// process: a job that was pinned to a loop can resume at any time, so no loop is ever stopped.
///
/// Isolation: everything but ``enqueue(_:)``, ``execute(_:)`` and ``isCurrent`` is for the loop's own thread.
/// That is what `@unchecked Sendable` rests on; ``preconditionOnLoop()`` checks it.
package final class EventLoop: SerialExecutor, TaskExecutor, @unchecked Sendable {
    /// The bytes that one read takes at most.
    package static let readBufferByteCount = 64 << 10
    /// Jobs that run between two polls; more wait for the next turn, so that jobs never starve the sockets.
    private static let jobCountMaxPerTurn = 256

    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private struct Inbox {
        var work: [Work] = []
        var isWaking = false
    }

    private let name: String
    let handle: UnsafeMutablePointer<uv_loop_t>
    private let wake: UnsafeMutablePointer<uv_async_t>
    /// Work from other threads.
    private let inbox = Mutex(Inbox())
    /// Work from this thread; loop-confined.
    private var local: [Work] = []
    /// What runs once at the end of a turn, after all work: flushes that coalesce many writes. Loop-confined.
    private var turnEnd: [() -> Void] = []
    /// What continues after the sockets and timers had their turn. Loop-confined.
    private var nextTurn: [() -> Void] = []
    /// One buffer for all sockets of the loop, filled and read within one callback. Loop-confined.
    package let readBuffer = UnsafeMutableRawBufferPointer.allocate(
        byteCount: readBufferByteCount,
        alignment: 16
    )

    package init(name: String) {
        self.name = name
        handle = .allocate(capacity: 1)
        wake = .allocate(capacity: 1)
        precondition(uv_loop_init(handle) == 0, "cannot make an event loop")
        handle.pointee.data = Unmanaged.passUnretained(self).toOpaque()
        installHandles()
        // The thread keeps the loop alive for ever.
        let context = Unmanaged.passRetained(self).toOpaque()
        var thread = pthread_t()
        let code = pthread_create(&thread, nil, { EventLoop.threadBody($0) }, context)
        precondition(code == 0, "cannot start a loop thread: \(String(cString: strerror(code)))")
        pthread_detach(thread)
    }

    /// True on the loop's own thread.
    package var isCurrent: Bool {
        pthread_getspecific(currentLoopKey) == Unmanaged.passUnretained(self).toOpaque()
    }

    package func preconditionOnLoop() { precondition(isCurrent, "must run on the owning event loop") }

    /// Runs `body` on the loop, after what was handed over before it. Never runs it at once.
    package func execute(_ body: @escaping @Sendable () -> Void) { hand(.closure(body)) }

    /// Runs `body` at the end of this turn, after every job. For the loop's own thread.
    package func atTurnEnd(_ body: @escaping () -> Void) {
        turnEnd.append(body)
    }

    /// Runs `body` after the next poll, so that one busy socket leaves room for the others. For the loop's own thread.
    package func inNextTurn(_ body: @escaping () -> Void) {
        nextTurn.append(body)
        uv_async_send(wake)
    }

    package func enqueue(_ job: consuming ExecutorJob) { hand(.job(UnownedJob(job))) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
    package func checkIsolated() { preconditionOnLoop() }
    package func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// Milliseconds of the loop's monotonic clock, as of the start of the turn.
    package var nowMilliseconds: UInt64 { uv_now(handle) }

    package var now: Duration { .milliseconds(Int64(nowMilliseconds)) }

    private func hand(_ work: Work) {
        if isCurrent {
            // A turn drains `local` before and after it polls, so work added by a callback needs no system call.
            // Work added while draining turns up in the same drain.
            local.append(work)
            return
        }
        let mustWake = inbox.withLock { inbox in
            inbox.work.append(work)
            defer { inbox.isWaking = true }
            return !inbox.isWaking
        }
        if mustWake { uv_async_send(wake) }
    }

    private static func threadBody(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let context else { return nil }
        pthread_setspecific(currentLoopKey, context)
        let loop = Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue()
        tidings_uv_name_thread(loop.name)
        // OpenSSL writes with write(2), which raises SIGPIPE in the thread that calls it. A library installs no handler,
        // but its own threads may block the signal: the write then fails with EPIPE.
        var pipe = sigset_t()
        sigemptyset(&pipe)
        sigaddset(&pipe, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipe, nil)
        uv_run(loop.handle, UV_RUN_DEFAULT)
        fatalError("an event loop ended")
    }

    private func installHandles() {
        uv_async_init(handle, wake) { _ in }
        // Prepare runs before the poll, check after it: together they leave no job behind a blocking poll.
        let prepare = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
        uv_prepare_init(handle, prepare)
        uv_prepare_start(prepare) { EventLoop.of($0?.pointee.loop)?.drain() }
        let check = UnsafeMutablePointer<uv_check_t>.allocate(capacity: 1)
        uv_check_init(handle, check)
        uv_check_start(check) { EventLoop.of($0?.pointee.loop)?.drain() }
    }

    static func of(_ loop: UnsafeMutablePointer<uv_loop_t>?) -> EventLoop? {
        loop?.pointee.data.map { Unmanaged<EventLoop>.fromOpaque($0).takeUnretainedValue() }
    }

    private func runTurnEnd() -> Int {
        let bodies = turnEnd
        turnEnd.removeAll(keepingCapacity: true)
        for body in bodies { body() }
        return bodies.count
    }

    /// Runs what is there. Work that it makes itself is bounded, so that it starves neither sockets nor timers.
    private func drain() {
        var left = Self.jobCountMaxPerTurn
        let continued = nextTurn
        nextTurn.removeAll(keepingCapacity: true)
        for body in continued { body() }
        while true {
            let foreign = inbox.withLock { inbox in
                inbox.isWaking = false
                let work = inbox.work
                inbox.work.removeAll()
                return work
            }
            local += foreign
            if local.isEmpty {
                if turnEnd.isEmpty { return }
                // A flush may cause the next one (a fast reader of a long body): it counts like many jobs.
                left -= runTurnEnd() * 64
                if left > 0 { continue }
                uv_async_send(wake)
                return
            }
            let batch = local
            local.removeAll(keepingCapacity: true)
            for work in batch {
                switch work {
                case .job(let job):
                    job.runSynchronously(
                        isolatedTo: asUnownedSerialExecutor(),
                        taskExecutor: asUnownedTaskExecutor()
                    )
                case .closure(let body): body()
                }
            }
            left -= batch.count
            if left <= 0 {
                _ = runTurnEnd()
                uv_async_send(wake)
                return
            }
        }
    }
}

/// The loop whose thread this is, for ``EventLoop/isCurrent``.
private let currentLoopKey: pthread_key_t = {
    var key = pthread_key_t()
    let code = pthread_key_create(&key, nil)
    precondition(code == 0, "cannot make a thread-local key")
    return key
}()

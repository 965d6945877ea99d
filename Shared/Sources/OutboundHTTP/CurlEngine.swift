import CTidingsCurl
import EventLoops
import Glibc

/// A curl multi handle driven by one loop. Everything but `start` and `deinit` is for the loop's thread.
final class CurlEngine: @unchecked Sendable {
    private let loop: EventLoop
    private var multi: UnsafeMutableRawPointer?
    private var timer: LoopTimer?
    /// Set from the end of the last transfer on. libcurl looks at its kept connections only when it is used, so that those which
    /// their servers closed would stay open here.
    private var idleTimer: LoopTimer?
    private var idleSince: UInt64 = 0
    private let idleTimeout: Duration
    private var sockets: [Int32: SocketPoll] = [:]
    /// Transfers under way, so that they live until they end.
    private var transfers: [ObjectIdentifier: CurlTransfer] = [:]

    init(on loop: EventLoop, idleTimeout: Duration) {
        self.loop = loop
        self.idleTimeout = idleTimeout
    }

    deinit {
        // The last transfer holds the engine through its continuation's caller, so nothing is under way; the
        // connections that curl keeps open are closed on the loop, where their poll handles live.
        let remains = Remains(multi: multi, sockets: Array(sockets.values), timers: [timer, idleTimer])
        loop.execute { remains.dispose() }
    }

    func start(_ transfer: CurlTransfer) {
        loop.execute { [self] in
            guard let multi = readyMulti(), let easy = transfer.easy else {
                return transfer.finish(CURLE_FAILED_INIT)
            }
            transfers[ObjectIdentifier(transfer)] = transfer
            let code = curl_multi_add_handle(multi, easy)
            if code != CURLM_OK {
                transfers[ObjectIdentifier(transfer)] = nil
                transfer.finish(CURLE_FAILED_INIT)
            }
        }
    }

    private func readyMulti() -> UnsafeMutableRawPointer? {
        if let multi { return multi }
        guard Self.isCurlReady, let made = curl_multi_init() else { return nil }
        let context = Unmanaged.passUnretained(self).toOpaque()
        _ = tidings_curl_multi_socket_function(made, socketChanged, context)
        _ = tidings_curl_multi_timer_function(made, timerChanged, context)
        multi = made
        return made
    }

    /// Once per process, before any thread uses curl (curl_global_init(3)).
    private static let isCurlReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    fileprivate func watch(_ descriptor: curl_socket_t, _ what: Int32) {
        if what == CURL_POLL_REMOVE {
            sockets.removeValue(forKey: descriptor)?.close()
            return
        }
        let socket: SocketPoll
        if let known = sockets[descriptor] {
            socket = known
        } else {
            guard let made = try? SocketPoll(descriptor: descriptor, on: loop, isOwner: false) else { return }
            made.onReady = { [weak self] readable, writable in
                self?.act(
                    descriptor,
                    (readable ? CURL_CSELECT_IN : 0) | (writable ? CURL_CSELECT_OUT : 0)
                )
            }
            socket = made
            sockets[descriptor] = made
        }
        socket.watch(
            readable: what == CURL_POLL_IN || what == CURL_POLL_INOUT,
            writable: what == CURL_POLL_OUT || what == CURL_POLL_INOUT
        )
    }

    fileprivate func setTimer(_ milliseconds: Int) {
        timer?.cancel()
        timer = nil
        guard milliseconds >= 0 else { return }
        timer = LoopTimer(on: loop, after: .milliseconds(milliseconds)) { [weak self] in
            self?.act(CURL_SOCKET_TIMEOUT, 0)
        }
    }

    private func act(_ descriptor: curl_socket_t, _ flags: Int32) {
        guard let multi else { return }
        var running: Int32 = 0
        curl_multi_socket_action(multi, descriptor, flags, &running)
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
                continue
            }
            let result = tidings_curl_message_result(message)
            let transfer = CurlTransfer.of(tidings_curl_private(easy))
            curl_multi_remove_handle(multi, easy)
            guard let transfer else { continue }
            transfer.finish(result)
            transfers[ObjectIdentifier(transfer)] = nil
        }
        guard transfers.isEmpty else { return }
        idleSince = loop.nowMilliseconds
        if idleTimer == nil { watchIdle(for: idleTimeout.wholeMilliseconds) }
    }

    private func watchIdle(for milliseconds: UInt64) {
        idleTimer = LoopTimer(on: loop, after: .milliseconds(milliseconds)) { [weak self] in self?.idled() }
    }

    /// Closes every connection after an idle time; the next transfer makes a new handle.
    private func idled() {
        idleTimer = nil
        // The end of what is under way sets the timer again.
        guard transfers.isEmpty, let old = multi else { return }
        let end = idleSince + idleTimeout.wholeMilliseconds
        guard loop.nowMilliseconds >= end else { return watchIdle(for: end - loop.nowMilliseconds) }
        multi = nil
        let remains = Remains(multi: old, sockets: Array(sockets.values), timers: [timer])
        timer = nil
        sockets = [:]
        remains.dispose()
    }
}

/// What an engine leaves behind, disposed of on its loop.
private struct Remains: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer?
    let sockets: [SocketPoll]
    let timers: [LoopTimer?]

    func dispose() {
        for timer in timers { timer?.cancel() }
        for socket in sockets { socket.close() }
        guard let multi else { return }
        // The callbacks' context is gone.
        _ = tidings_curl_multi_socket_function(multi, { _, _, _, _, _ in 0 }, nil)
        _ = tidings_curl_multi_timer_function(multi, { _, _, _ in 0 }, nil)
        curl_multi_cleanup(multi)
    }
}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?,
    _ descriptor: curl_socket_t,
    _ what: Int32,
    _ context: UnsafeMutableRawPointer?,
    _ socketContext: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context else { return 0 }
    Unmanaged<CurlEngine>.fromOpaque(context).takeUnretainedValue().watch(descriptor, what)
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?,
    _ milliseconds: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context else { return 0 }
    Unmanaged<CurlEngine>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds)
    return 0
}

import EventLoops
import Glibc
import JSONBytes
import PushTelemetry
import TLSTransport

/// The daemon's control socket: one JSON object per line in, JSON objects per line out, the last one with `"done"`.
///
/// The socket file lies in the state folder (0700), so whoever can reach it may control the daemon.
final class ControlServer: @unchecked Sendable {
    typealias Handler =
        @Sendable (JSONObject, _ reply: @escaping @Sendable (JSONObject) -> Void) async -> Void

    private let loop: EventLoop
    private let handler: Handler
    /// Kept open, so that the socket's path stays short however deep the folder lies: a path holds 107 bytes.
    private let folder: Int32
    private let path: String
    /// Loop-confined.
    private var poll: SocketPoll?

    init(
        folder path: String,
        on loop: EventLoop = EventLoopGroup.shared.next(),
        handler: @escaping Handler
    ) throws {
        self.loop = loop
        self.handler = handler
        self.path = path + "/control.sock"
        folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0, let address = SocketAddress(unixPath: "/proc/self/fd/\(folder)/control.sock")
        else {
            throw DaemonFailure("Cannot open the state folder \(path).")
        }
        // Only one daemon holds the folder's lock, so a socket that is there is a leftover.
        unlink(self.path)
        let descriptor = try address.listen(backlog: 16)
        loop.execute { [self] in
            guard let poll = try? SocketPoll(descriptor: descriptor, on: loop) else { return }
            poll.onReady = { [unowned self] _, _ in accept() }
            poll.watch(readable: true, writable: false)
            self.poll = poll
        }
    }

    func stop() {
        unlink(path)
        loop.execute { [self] in
            poll?.close()
            poll = nil
            close(folder)
        }
    }

    private func accept() {
        guard let poll else { return }
        while true {
            let descriptor = Sockets.accept(poll.descriptor)
            guard descriptor >= 0 else { return }
            guard let stream = try? StreamConnection(descriptor: descriptor, role: .server(nil), on: loop)
            else { continue }
            stream.start(ControlConnection(stream, handler))
        }
    }
}

/// One remote control. Loop-confined; `@unchecked Sendable` lets a command's task answer through it.
private final class ControlConnection: StreamConnectionHandler, @unchecked Sendable {
    private static let lineByteCountMax = 32 << 20
    private let stream: StreamConnection
    private let handler: ControlServer.Handler
    private var input: [UInt8] = []

    init(_ stream: StreamConnection, _ handler: @escaping ControlServer.Handler) {
        self.stream = stream
        self.handler = handler
    }

    func streamOpened(applicationProtocol: String?) {}

    func streamReceived(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { input.append(contentsOf: $0) }
        while let end = input.firstIndex(of: 0x0A) {
            let line = Array(input[..<end])
            input.removeFirst(end + 1)
            run(line)
        }
        if input.count > Self.lineByteCountMax { stream.close(.failed("a command is too long")) }
    }

    private func run(_ line: [UInt8]) {
        let reply: @Sendable (JSONObject) -> Void = { [self] object in
            let bytes = JSONValue.object(object).serialized() + [0x0A]
            stream.loop.execute { self.stream.write(bytes) }
        }
        guard case .object(let object)? = try? JSONValue(parsing: line) else {
            return reply(JSONObject(["done": true, "ok": false, "error": "a command must be a JSON object"]))
        }
        let handler = handler
        // Answers through `reply`; a control that went away loses them.
        Task { await handler(object, reply) }
    }

    func streamEnded() { stream.closeWhenDrained() }
    func streamClosed(_ reason: StreamCloseReason) {}
}

/// The other end: sends one command and reads the answers.
enum ControlClient {
    private static func connect(_ path: String) -> Int32? {
        let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard folder >= 0 else { return nil }
        defer { close(folder) }
        return try? SocketAddress(unixPath: "/proc/self/fd/\(folder)/control.sock")?.connect()
    }

    /// How long a command that waits for the daemon looks for it.
    static let waitLimit = Duration.seconds(10)

    /// Sends a command; calls `onLine` for each answer until the last one, which it returns.
    ///
    /// - Parameter waits: For a daemon that is just being started.
    static func send(
        _ command: JSONObject,
        folder path: String,
        waits: Bool = false,
        onLine: (JSONObject) -> Void
    ) throws -> JSONObject {
        let deadline = ContinuousClock.now + waitLimit
        var connected = connect(path)
        while connected == nil, waits, ContinuousClock.now < deadline {
            // Nothing tells of a program that is not there yet.
            usleep(20_000)
            connected = connect(path)
        }
        guard let socket = connected else {
            throw DaemonFailure(
                "No daemon runs with the state folder \(path): start one with 'tidings-device run'."
            )
        }
        defer { close(socket) }
        // The descriptor is made for loops; this program only waits.
        _ = fcntl(socket, F_SETFL, 0)
        var bytes = (JSONValue.object(command).serialized() + [0x0A])[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(socket, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw DaemonFailure("The daemon went away.") }
            bytes = bytes.dropFirst(count)
        }
        var input: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            while let end = input.firstIndex(of: 0x0A) {
                let line = Array(input[..<end])
                input.removeFirst(end + 1)
                guard case .object(let object)? = try? JSONValue(parsing: line) else {
                    throw DaemonFailure("The daemon's answer is not JSON.")
                }
                if object["done"] == true { return object }
                onLine(object)
            }
            let count = read(socket, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw DaemonFailure("The daemon went away before it answered.") }
            input += buffer[..<count]
        }
    }
}

import Foundation
package import Glibc
import ProcessLifecycle

/// Runs the built programs as processes of their own.
package enum Programs {
    package struct Output: Sendable {
        package var status: Int32
        package var lines: [String]
        package var errors: String
    }

    /// The folder with the built programs: beside the test bundle, or beside the program that runs.
    private static var folder: URL {
        if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
            return URL(fileURLWithPath: bundle).deletingLastPathComponent()
        }
        return URL(fileURLWithPath: Files.programFolder)
    }

    package static func tidings(_ arguments: [String], connection: String, ca: String) async throws -> Output
    {
        try await run("tidings", arguments, ["TIDINGS_CONNECTION": connection, "TIDINGS_CA": ca])
    }

    package static func run(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        input: String = ""
    ) async throws -> Output {
        try await onThread { try wait(name, arguments, environment, input) }
    }

    private static func wait(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ input: String
    ) throws -> Output {
        let scratch = try Files.makeScratchFolder("tidings-program")
        defer { Files.removeTree(scratch) }
        try Files.replace(scratch + "/input", with: Array(input.utf8))
        let process = try spawn(name, arguments, environment, scratch)
        return try output(of: process, scratch)
    }

    private static func output(of process: pid_t, _ scratch: String) throws -> Output {
        var status: Int32 = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        func text(_ name: String) throws -> String {
            String(decoding: try Files.read(scratch + "/" + name, byteCountMax: 1 << 30) ?? [], as: UTF8.self)
        }
        // As a shell tells it: the exit code, or 128 and the signal.
        return Output(
            status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F,
            lines: try text("output").split(separator: "\n").map(String.init),
            errors: try text("errors")
        )
    }

    /// By posix_spawn(3), with files for the three streams: Foundation's Process reads past a buffer (Swift 6.2), which ends
    /// a run under the address sanitizer. `output` may be a FIFO that somebody reads.
    private static func spawn(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ scratch: String,
        descriptorCountMax: Int? = nil
    ) throws -> pid_t {
        var program = folder.appendingPathComponent(name).path
        if access(program, X_OK) != 0 {
            program =
                URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../.build/debug/\(name)").path
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, scratch + "/input", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, scratch + "/output", O_RDWR | O_CREAT, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, scratch + "/errors", O_WRONLY | O_CREAT, 0o600)
        let variables = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        var words = [program] + arguments
        if let descriptorCountMax {
            words = ["/bin/sh", "-c", "ulimit -n \(descriptorCountMax); exec \"$0\" \"$@\""] + words
        }
        var argumentList = words.map { strdup($0) } + [nil]
        var variableList = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argumentList + variableList { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, words[0], &actions, nil, &argumentList, &variableList)
        guard code == 0 else {
            throw WorldFailure("\(program) cannot be started: \(String(cString: strerror(code)))")
        }
        return process
    }

    /// A program that runs until it is told to end.
    package final class Running: Sendable {
        package let process: pid_t
        private let scratch: String
        private let reader: FileHandle

        fileprivate init(
            _ name: String,
            _ arguments: [String],
            _ environment: [String: String],
            descriptorCountMax: Int?
        ) throws {
            scratch = try Files.makeScratchFolder("tidings-program")
            try Files.replace(scratch + "/input", with: [])
            guard mkfifo(scratch + "/output", 0o600) == 0 else { throw WorldFailure("no FIFO") }
            // Neither side waits for the other to open it.
            let descriptor = Glibc.open(scratch + "/output", O_RDWR | O_CLOEXEC)
            reader = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            process = try Programs.spawn(
                name,
                arguments,
                environment,
                scratch,
                descriptorCountMax: descriptorCountMax
            )
        }

        /// The next line of standard output; to be called by one at a time.
        package func nextLine() async throws -> String {
            try await Programs.onThread { [reader] in
                var line: [UInt8] = []
                while let byte = try reader.read(upToCount: 1)?.first, byte != UInt8(ascii: "\n") {
                    line.append(byte)
                }
                return String(decoding: line, as: UTF8.self)
            }
        }

        /// What it has printed and nobody has read, without waiting.
        package func unreadLines() -> [String] {
            let descriptor = reader.fileDescriptor
            let flags = fcntl(descriptor, F_GETFL)
            _ = fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)
            defer { _ = fcntl(descriptor, F_SETFL, flags) }
            var bytes: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                guard count > 0 else { break }
                bytes += buffer[..<count]
            }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
        }

        /// What it has written to standard error so far.
        package func errorText() throws -> String {
            String(decoding: try Files.read(scratch + "/errors") ?? [], as: UTF8.self)
        }

        package func send(_ signal: Int32) { kill(process, signal) }

        /// Waits for the end; the lines are those on standard error.
        package func end() async throws -> (status: Int32, errors: String) {
            try await Programs.onThread { [process, scratch] in
                defer { Files.removeTree(scratch) }
                // The FIFO is not read again.
                unlink(scratch + "/output")
                let output = try Programs.output(of: process, scratch)
                return (output.status, output.errors)
            }
        }
    }

    /// Starts a program and leaves it running, under a limit of open descriptors if one is given.
    package static func start(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String] = [:],
        descriptorCountMax: Int? = nil
    ) throws -> Running {
        try Running(name, arguments, environment, descriptorCountMax: descriptorCountMax)
    }

    /// Work on a thread of its own, which nobody waits for.
    static func detach(_ body: @escaping @Sendable () -> Void) { Thread.detachNewThread(body) }

    /// Blocking work on a thread of its own: the World in this process needs the shared pool, whose threads are few.
    package static func onThread<Value: Sendable>(
        _ body: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
        }
    }
}

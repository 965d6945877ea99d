import Foundation
import Glibc
import ProcessLifecycle
import TidingsConformance

/// Runs the built programs as processes of their own.
enum Programs {
    struct Output {
        var status: Int32
        var lines: [String]
        var errors: String
    }

    /// The folder with the built programs: beside the test bundle.
    private static var folder: URL {
        var url = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        if let bundle = CommandLine.arguments.first(where: { $0.hasSuffix(".xctest") }) {
            url = URL(fileURLWithPath: bundle).deletingLastPathComponent()
        }
        return url
    }

    static func tidings(_ arguments: [String], connection: String, ca: String) async throws -> Output {
        try await run("tidings", arguments, ["TIDINGS_CONNECTION": connection, "TIDINGS_CA": ca])
    }

    /// Waits on a thread of its own: the World in this process needs the shared pool, whose threads are few.
    static func run(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        input: String = ""
    ) async throws -> Output {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try wait(name, arguments, environment, input) })
            }
        }
    }

    /// By posix_spawn(3), with files for the three streams: Foundation's Process reads past a buffer (Swift 6.2), which ends
    /// a run under the address sanitizer.
    private static func wait(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ input: String
    ) throws -> Output {
        var program = folder.appendingPathComponent(name).path
        if access(program, X_OK) != 0 {
            program =
                URL(fileURLWithPath: #filePath).deletingLastPathComponent()
                .appendingPathComponent("../../.build/debug/\(name)").path
        }
        let scratch = try Files.makeScratchFolder("tidings-program")
        defer { Files.removeTree(scratch) }
        try Files.replace(scratch + "/input", with: Array(input.utf8))
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, scratch + "/input", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, scratch + "/output", O_WRONLY | O_CREAT, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, scratch + "/errors", O_WRONLY | O_CREAT, 0o600)
        let variables = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        var argumentList = ([program] + arguments).map { strdup($0) } + [nil]
        var variableList = variables.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in argumentList + variableList { free(text) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, program, &actions, nil, &argumentList, &variableList)
        guard code == 0 else {
            throw WorldFailure("\(program) cannot be started: \(String(cString: strerror(code)))")
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) == -1, errno == EINTR {}
        func text(_ name: String) throws -> String {
            String(decoding: try Files.read(scratch + "/" + name) ?? [], as: UTF8.self)
        }
        // As a shell tells it: the exit code, or 128 and the signal.
        return Output(
            status: status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F,
            lines: try text("output").split(separator: "\n").map(String.init),
            errors: try text("errors")
        )
    }
}

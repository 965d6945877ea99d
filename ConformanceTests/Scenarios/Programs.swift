import Foundation
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

    private static func wait(
        _ name: String,
        _ arguments: [String],
        _ environment: [String: String],
        _ input: String
    ) throws -> Output {
        var program = folder.appendingPathComponent(name)
        if !FileManager.default.isExecutableFile(atPath: program.path) {
            program = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent(
                "../../.build/debug/\(name)"
            )
        }
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { _, new in new }
        let (output, errors, standardInput) = (Pipe(), Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = standardInput
        try process.run()
        standardInput.fileHandleForWriting.write(Data(input.utf8))
        try standardInput.fileHandleForWriting.close()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        let errorText = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Output(
            status: process.terminationStatus,
            lines: text.split(separator: "\n").map(String.init),
            errors: errorText
        )
    }
}

import Foundation
import Glibc

/// A program that runs beside the benchmark and is measured from outside.
final class MeasuredProcess {
    private let process = Process()
    private let output = Pipe()

    /// Core 0 for what is measured, core 1 for the load, so that neither takes the other's time; no pinning on one core.
    enum Core: Int {
        case measured = 0, load = 1
    }

    /// - Parameter showsErrors: Passes on what it writes to standard error.
    init(_ program: String, _ arguments: [String], on core: Core, showsErrors: Bool = false) throws {
        if ProcessInfo.processInfo.activeProcessorCount > 1 {
            process.executableURL = URL(fileURLWithPath: "/usr/bin/taskset")
            process.arguments = ["-c", String(core.rawValue), program] + arguments
        } else {
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = arguments
        }
        process.standardOutput = output
        process.standardInput = FileHandle.nullDevice
        process.standardError = showsErrors ? FileHandle.standardError : FileHandle.nullDevice
        // A thread of a task pool blocks signals, which its children inherit: pgbench -T waits for SIGALRM.
        var none = sigset_t()
        var former = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, &former)
        defer { pthread_sigmask(SIG_SETMASK, &former, nil) }
        try process.run()
    }

    /// The first line of standard output.
    func firstLine() throws -> String {
        var line = Data()
        while let byte = try output.fileHandleForReading.read(upToCount: 1), byte != Data("\n".utf8) {
            line += byte
        }
        guard !line.isEmpty else {
            throw BenchmarkError("\(process.arguments ?? []) ended before it was ready")
        }
        return String(decoding: line, as: UTF8.self)
    }

    /// Everything that the program prints, at its end.
    func result() throws -> String {
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw BenchmarkError("\(process.arguments ?? []) ended with \(process.terminationStatus)")
        }
        return String(decoding: data, as: UTF8.self)
    }

    /// Ends it and waits for the end. SIGKILL, since a child inherits the signals that this thread blocks (SIGTERM among
    /// them, on a thread of Dispatch), and what it holds is scratch.
    func stop() {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// User and system time so far, of all threads (proc(5), `/proc/pid/stat`, fields 14 and 15), in steps of a clock tick.
    var cpuSeconds: Double {
        get throws {
            let text = try String(
                contentsOfFile: "/proc/\(process.processIdentifier)/stat",
                encoding: .utf8
            )
            // The second field is the name in parentheses and may hold blanks.
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            guard fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) else {
                throw BenchmarkError("/proc/pid/stat is not as expected")
            }
            return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    /// Resident memory (proc(5), `/proc/pid/statm`, field 2).
    var residentByteCount: Int {
        get throws {
            let text = try String(
                contentsOfFile: "/proc/\(process.processIdentifier)/statm",
                encoding: .utf8
            )
            guard let pages = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
                throw BenchmarkError("/proc/pid/statm is not as expected")
            }
            return pages * sysconf(Int32(_SC_PAGESIZE))
        }
    }
}

/// Where programs are.
enum Programs {
    static var own: String {
        get throws { try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") }
    }

    /// Beside the benchmark itself.
    static var tidings: String {
        get throws {
            let path = URL(fileURLWithPath: try own).deletingLastPathComponent().path + "/tidings"
            guard FileManager.default.isExecutableFile(atPath: path) else {
                throw BenchmarkError("\(path) is not built: run `make bench`")
            }
            return path
        }
    }

    static func installed(_ name: String) throws -> String {
        for folder in ["/usr/bin", "/usr/sbin", "/usr/local/bin"]
        where FileManager.default.isExecutableFile(atPath: "\(folder)/\(name)") {
            return "\(folder)/\(name)"
        }
        throw BenchmarkError("\(name) is not installed: run `make bench`, which installs what is needed")
    }

    /// The project's Python and a script of `Peers`; nil where the module that it needs is not installed.
    static func peer(_ script: String, imports module: String) -> (python: String, script: String)? {
        // Where `make` runs: the root of the project.
        let python = FileManager.default.currentDirectoryPath + "/.venv/bin/python"
        guard FileManager.default.isExecutableFile(atPath: python),
            (try? MeasuredProcess(python, ["-c", "import \(module)"], on: .load).result()) != nil
        else { return nil }
        return (python, "Backend/Benchmarks/Peers/\(script)")
    }
}

import Foundation
import Glibc
import ProcessLifecycle

/// PostgreSQL with its defaults, in a folder of its own, reachable over a Unix socket there.
struct PostgreSQLProcess {
    private let process: MeasuredProcess
    private let folder: String
    private let programs: String
    private let record: [UInt8]
    private let rowCount: Int

    init(rowCount: Int, record: [UInt8]) throws {
        self.rowCount = rowCount
        self.record = record
        programs = try Self.programFolder()
        folder = try Files.makeScratchFolder("tidings-benchmark-postgres")
        if geteuid() == 0 {
            guard let owner = getpwnam("postgres") else {
                throw BenchmarkError(
                    "the user postgres is missing: run `make bench`, which installs PostgreSQL"
                )
            }
            guard chown(folder, owner.pointee.pw_uid, owner.pointee.pw_gid) == 0 else {
                throw BenchmarkError("\(folder) can't be given to postgres: errno \(errno)")
            }
        }
        let data = folder + "/data"
        _ = try Self.program(programs + "/initdb", ["-D", data, "-A", "trust", "-U", "postgres"]).result()
        process = try Self.program(
            programs + "/postgres",
            ["-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "max_connections=300"]
        )
        try ready()
        _ = try client(
            "psql",
            [
                "-v", "ON_ERROR_STOP=1", "-c",
                "CREATE TABLE registration (id bigint PRIMARY KEY, etag bigint NOT NULL, record bytea NOT NULL)",
            ]
        ).result()
    }

    /// PostgreSQL does not run as root.
    private static func program(_ path: String, _ arguments: [String]) throws -> MeasuredProcess {
        guard geteuid() == 0 else { return try MeasuredProcess(path, arguments, on: .measured) }
        return try MeasuredProcess(
            Programs.installed("setpriv"),
            ["--reuid=postgres", "--regid=postgres", "--clear-groups", path] + arguments,
            on: .measured
        )
    }

    private func client(_ name: String, _ arguments: [String]) throws -> MeasuredProcess {
        try MeasuredProcess(
            Programs.installed(name),
            ["-h", folder, "-U", "postgres"] + arguments + ["postgres"],
            on: .load
        )
    }

    /// `pg_isready` asks for ten seconds at most.
    private func ready() throws {
        for _ in 0..<100 {
            let question = try client("pg_isready", ["-t", "10", "-d"])
            if (try? question.result()) != nil { return }
            usleep(100_000)
        }
        throw BenchmarkError("PostgreSQL does not listen in \(folder)")
    }

    /// Debian keeps each version's programs in a folder of its own.
    private static func programFolder() throws -> String {
        let root = "/usr/lib/postgresql"
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        guard let newest = versions.compactMap({ Int($0) }).max() else {
            throw BenchmarkError("PostgreSQL is not installed: run `make bench`, which installs it")
        }
        return "\(root)/\(newest)/bin"
    }

    func upsertsPerSecond(clients: Int, seconds: Int) throws -> Double {
        let script = folder + "/upsert.sql"
        let bytes = record.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try Files.replace(
            script,
            with: Array(
                """
                \\set id random(1, \(rowCount))
                INSERT INTO registration (id, etag, record) VALUES (:id, 1, '\\x\(bytes)')
                ON CONFLICT (id) DO UPDATE SET etag = registration.etag + 1, record = excluded.record;

                """.utf8
            )
        )
        let report = try client(
            "pgbench",
            ["-n", "-M", "prepared", "-c", "\(clients)", "-j", "1", "-T", "\(seconds)", "-f", script]
        ).result()
        // "tps = 12345.678901 (without initial connection time)"
        guard let line = report.split(separator: "\n").first(where: { $0.hasPrefix("tps = ") }),
            let rate = Double(line.dropFirst(6).prefix { $0 != " " })
        else { throw BenchmarkError("pgbench's report is not as expected:\n\(report)") }
        return rate
    }

    func stop() {
        // Its children end by themselves once it is gone; an orderly end also frees its shared memory.
        let end = try? Self.program(
            programs + "/pg_ctl",
            ["-D", folder + "/data", "-m", "fast", "-w", "stop"]
        )
        _ = try? end?.result()
        process.stop()
        Files.removeTree(folder)
    }
}

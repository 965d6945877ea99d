import EventLoops
import Glibc
import ProcessLifecycle
import SQLiteStorage
import Synchronization
import Testing

@Suite("SQLite with group commit")
struct StorageTests {
    private func withDatabase(
        _ migrations: [String] = ["CREATE TABLE t (a INTEGER PRIMARY KEY)"],
        _ body: (Database, String) async throws -> Void
    ) async throws {
        let folder = try Files.makeScratchFolder("tidings-db")
        defer { Files.removeTree(folder) }
        let database = try Database(path: folder + "/x.sqlite", schema: .init(migrations))
        defer { database.close() }
        try await body(database, folder + "/x.sqlite")
    }

    private struct Refused: Error {}

    @Test("one that throws takes nothing of the others back, and each reads its own write")
    func savepoints() async throws {
        try await withDatabase { database, _ in
            await withTaskGroup(of: Void.self) { group in
                for index in 0..<200 {
                    group.addTask {
                        do {
                            try await database.write { connection in
                                try connection.run("INSERT INTO t VALUES (?1)", .integer(index))
                                if index.isMultiple(of: 3) { throw Refused() }
                            }
                            let found = try await database.read {
                                try $0.row("SELECT 1 FROM t WHERE a = ?1", .integer(index)) {
                                    (row) throws(SQLiteError) in true
                                }
                            }
                            #expect(found == true)
                        } catch { #expect(index.isMultiple(of: 3)) }
                    }
                }
            }
            let count = try await database.read {
                try $0.row("SELECT COUNT(*) FROM t") { (row) throws(SQLiteError) in row.integer(0) }
            }
            #expect(count == 133)
        }
    }

    @Test("what follows a commit runs in commit order, before the answer")
    func commitOrder() async throws {
        try await withDatabase { database, _ in
            let order = OrderLog()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<100 {
                    group.addTask {
                        let row = try await database.write(onCommit: { order.add($0) }) { connection in
                            try connection.run("INSERT INTO t VALUES (NULL)")
                            return connection.lastInsertedRow
                        }
                        #expect(order.values.contains(row))
                        _ = index
                    }
                }
                try await group.waitForAll()
            }
            #expect(order.values == Array(1...100))
        }
    }

    @Test("migrations go forward, and a newer schema is refused")
    func migrations() async throws {
        try await withDatabase { database, path in
            try await database.write { try $0.run("INSERT INTO t VALUES (7)") }
            database.close()
            let newer = try Database(
                path: path,
                schema: .init([
                    "CREATE TABLE t (a INTEGER PRIMARY KEY)", "ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'x'",
                ])
            )
            #expect(
                try await newer.read {
                    try $0.row("SELECT b FROM t WHERE a = 7") { (row) throws(SQLiteError) in row.text(0) }
                } == "x"
            )
            newer.close()
            let error = #expect(throws: SQLiteError.self) {
                try Database(path: path, schema: .init(["CREATE TABLE t (a INTEGER PRIMARY KEY)"]))
            }
            #expect(error?.message.contains("schema version 2") == true)
        }
    }

    @Test("a reader whose row could not be read sees later writes")
    func throwingReader() async throws {
        try await withDatabase { database, _ in
            try await database.write { try $0.run("INSERT INTO t VALUES (1), (2)") }
            for _ in 0..<4 {
                await #expect(throws: SQLiteError.self) {
                    try await database.read {
                        try $0.rows("SELECT a FROM t") { (row) throws(SQLiteError) in
                            throw SQLiteError(code: 11, message: "x")
                        }
                    }
                }
            }
            try await database.write { try $0.run("INSERT INTO t VALUES (3)") }
            for _ in 0..<4 {
                #expect(
                    try await database.read {
                        try $0.row("SELECT COUNT(*) FROM t") { (row) throws(SQLiteError) in row.integer(0) }
                    } == 3
                )
            }
        }
    }

    @Test("a state folder belongs to one process part at a time")
    func lock() throws {
        let folder = try Files.makeScratchFolder("tidings-lock")
        defer { Files.removeTree(folder) }
        let first = try StateFolder(path: folder + "/a/b")
        #expect(throws: StateFolder.Failure.self) { try StateFolder(path: folder + "/a/b") }
        // A child that is being started holds every descriptor until it runs its program.
        let path = "\(folder)/a/b/lock"
        let lock = try #require(
            (0..<20_000).first { descriptor in
                var link = [CChar](repeating: 0, count: 4096)
                let count = readlink("/proc/self/fd/\(descriptor)", &link, link.count)
                return count > 0
                    && String(decoding: link.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
                        .hasSuffix(path)
            }
        )
        let held = dup(Int32(lock))
        defer { close(held) }
        first.release()
        _ = try StateFolder(path: folder + "/a/b")
    }
}

private final class OrderLog: Sendable {
    private let state = Mutex<[Int64]>([])
    func add(_ value: Int64) { state.withLock { $0.append(value) } }
    var values: [Int64] { state.withLock { $0 } }
}

@Suite("Event loops")
struct LoopTests {
    @Test("a task that prefers a loop runs and resumes on it")
    func executor() async {
        let loop = EventLoopGroup.shared.next()
        let isOnLoop = await Task(executorPreference: loop) {
            let before = loop.isCurrent
            await Task.yield()
            return before && loop.isCurrent
        }.value
        #expect(isOnLoop)
    }

    @Test("work handed over from many threads runs once each, in the order of each thread")
    func handOver() async {
        let loop = EventLoopGroup.shared.next()
        let log = OrderLog()
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for index in 0..<1000 { loop.execute { log.add(Int64(thread * 10_000 + index)) } }
                    await withCheckedContinuation { done in loop.execute { done.resume() } }
                }
            }
        }
        let values = log.values
        #expect(values.count == 4000)
        for thread in 0..<4 {
            let own = values.filter { Int($0) / 10_000 == thread }
            #expect(own == own.sorted())
        }
    }

    @Test("timers fire in order; a cancelled one does not")
    func timers() async {
        let loop = EventLoopGroup.shared.next()
        let log = OrderLog()
        await withCheckedContinuation { done in
            loop.execute {
                _ = LoopTimer(on: loop, after: .milliseconds(5)) { log.add(2) }
                _ = LoopTimer(on: loop, after: .milliseconds(1)) { log.add(1) }
                let cancelled = LoopTimer(on: loop, after: .milliseconds(2)) { log.add(9) }
                cancelled.cancel()
                _ = LoopTimer(on: loop, after: .milliseconds(10)) { done.resume() }
            }
        }
        #expect(log.values == [1, 2])
    }

    @Test("a host is resolved, a name that does not exist fails")
    func resolve() async throws {
        let loop = EventLoopGroup.shared.next()
        #expect(try await !loop.resolve(host: "localhost", port: 1).isEmpty)
        #expect(try await loop.resolve(host: "::1", port: 1).count == 1)
        await #expect(throws: SystemError.self) {
            try await loop.resolve(host: "does-not-exist.invalid", port: 1)
        }
    }
}

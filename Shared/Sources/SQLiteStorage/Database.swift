import Glibc
package import PushTelemetry
import Synchronization

/// One SQLite database: a writer thread that commits in groups, and reader threads.
///
/// A write is durable when it returns: WAL with `synchronous=FULL`, and the commit comes before the answer. All
/// writes that wait when the writer turns to them share one transaction; each has a savepoint of its own, so
/// one that throws takes nothing of the others back.
package final class Database: Sendable {
    /// Writes in one transaction.
    package static let groupCountMax = 1000
    /// Writes that may wait; more are refused.
    package static let queueCountMax = 100_000
    /// WAL pages after which the writer moves the log into the database.
    private static let writesPerCheckpoint = 4000

    /// One step of the schema: version n is reached by running the n-th script.
    package struct Schema: Sendable {
        package let migrations: [String]
        package init(_ migrations: [String]) { self.migrations = migrations }
    }

    /// What a database tells about its work.
    package struct Statistics: Sendable {
        /// Writes per transaction.
        package let commitSizes = Histogram(bounds: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])
        /// From the begin of a transaction until it is on disk.
        package let commitSeconds = Histogram.ofSeconds()
    }

    package let statistics = Statistics()
    private let writer: WorkQueue
    private let readers: WorkQueue

    /// Writes and reads that wait for a thread.
    package var waitingCounts: (writes: Int, reads: Int) { (writer.count, readers.count) }

    /// Opens or makes the database and brings its schema up to date.
    /// - Throws: ``SQLiteError`` also when the schema is newer than this program.
    package init(path: String, schema: Schema, readerCount: Int = 2) throws(SQLiteError) {
        let connection = try Connection(path: path, access: .readWrite)
        try connection.execute(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=0; PRAGMA foreign_keys=ON"
        )
        try Self.migrate(connection, schema, path)
        writer = WorkQueue(countMax: Self.queueCountMax)
        readers = WorkQueue(countMax: Self.queueCountMax)
        // The connection moves to its thread for good.
        let owned = Unchecked(connection)
        let writerQueue = writer
        let statistics = statistics
        startThread { Self.writeLoop(owned.value, writerQueue, statistics) }
        for _ in 0..<readerCount {
            let reader = Unchecked(try Connection(path: path, access: .readOnly))
            let readerQueue = readers
            startThread {
                while let work = readerQueue.next(max: 1) { for item in work { item.run(reader.value) } }
            }
        }
    }

    deinit { close() }

    /// Ends the threads after what was handed in before; later calls throw.
    package func close() {
        writer.close()
        readers.close()
    }

    /// Writes a consistent copy of a database that may be in use, in this process or another.
    /// Whoever needs the copy on disk flushes it.
    ///
    /// The source is opened for reading alone: a checkpoint from a second connection could damage the log of a live one.
    package static func copy(_ source: String, to target: String) throws(SQLiteError) {
        let connection = try Connection(path: source, access: .readOnly)
        // https://www.sqlite.org/lang_vacuum.html#vacuuminto: one snapshot, and the schema version goes with it.
        try connection.run("VACUUM INTO ?1", .text(target))
        let copy = try Connection(path: target, access: .readWrite)
        guard try copy.row("PRAGMA quick_check", read: { (row) throws(SQLiteError) in row.text(0) }) == "ok"
        else {
            throw SQLiteError(code: 11, message: "the copy of \(source) is damaged")
        }
    }

    /// Runs `body` in the current transaction and returns its result once the transaction is on disk.
    ///
    /// `onCommit` runs on the writer thread after the commit and before any answer leaves, in commit order: this
    /// is where an index follows the store.
    package func write<Result: Sendable>(
        onCommit: (@Sendable (Result) -> Void)? = nil,
        _ body: @escaping @Sendable (Connection) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            let item = WriteItem(body: body, onCommit: onCommit, continuation: continuation)
            if !writer.add(item) {
                continuation.resume(
                    throwing: SQLiteError(code: 5, message: "the write queue is full or closed")
                )
            }
        }
    }

    /// Runs `body` on a reader. It sees every write that returned before the call.
    package func read<Result: Sendable>(
        _ body: @escaping @Sendable (Connection) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            if !readers.add(ReadItem(body: body, continuation: continuation)) {
                continuation.resume(
                    throwing: SQLiteError(code: 5, message: "the read queue is full or closed")
                )
            }
        }
    }

    private static func migrate(
        _ connection: Connection,
        _ schema: Schema,
        _ path: String
    ) throws(SQLiteError) {
        let version = Int(
            try connection.row("PRAGMA user_version") { (row) throws(SQLiteError) in row.integer(0) } ?? 0
        )
        guard version <= schema.migrations.count else {
            throw SQLiteError(
                code: 26,
                message:
                    "\(path) has schema version \(version); this program knows \(schema.migrations.count) and older. "
                    + "Use the program that wrote it, or a newer one."
            )
        }
        for (index, migration) in schema.migrations.enumerated().dropFirst(version) {
            try connection.execute("BEGIN IMMEDIATE; \(migration); PRAGMA user_version=\(index + 1); COMMIT")
        }
    }

    private static func writeLoop(_ connection: Connection, _ queue: WorkQueue, _ statistics: Statistics) {
        var writesSinceCheckpoint = 0
        while let group = queue.next(max: groupCountMax) {
            let began = ContinuousClock.now
            commit(group, on: connection)
            statistics.commitSizes.add(Double(group.count))
            statistics.commitSeconds.add((ContinuousClock.now - began) / .seconds(1))
            writesSinceCheckpoint += group.count
            if writesSinceCheckpoint >= writesPerCheckpoint {
                // A reader that still needs the log makes this a partial one; the next turn goes on.
                try? connection.checkpoint()
                writesSinceCheckpoint = 0
            }
        }
        try? connection.checkpoint()
    }

    private static func commit(_ group: [any WorkItem], on connection: Connection) {
        do {
            try connection.execute("BEGIN IMMEDIATE")
            for item in group {
                try connection.execute("SAVEPOINT item")
                item.run(connection)
                try connection.execute(item.hasFailed ? "ROLLBACK TO item; RELEASE item" : "RELEASE item")
            }
            try connection.execute("COMMIT")
            for item in group { item.committed() }
            for item in group { item.answer(nil) }
        } catch {
            try? connection.execute("ROLLBACK")
            for item in group { item.answer(error) }
        }
    }
}

/// A unit of work and who waits for it. Used by one thread at a time: the caller makes it, the queue hands it
/// over, one worker finishes it.
private protocol WorkItem: AnyObject {
    func run(_ connection: Connection)
    var hasFailed: Bool { get }
    func committed()
    func answer(_ failure: (any Error)?)
}

private final class WriteItem<Value: Sendable>: WorkItem {
    private let body: @Sendable (Connection) throws -> Value
    private let onCommit: (@Sendable (Value) -> Void)?
    private let continuation: CheckedContinuation<Value, any Error>
    private var result: Result<Value, any Error>?

    init(
        body: @escaping @Sendable (Connection) throws -> Value,
        onCommit: (@Sendable (Value) -> Void)?,
        continuation: CheckedContinuation<Value, any Error>
    ) {
        self.body = body
        self.onCommit = onCommit
        self.continuation = continuation
    }

    func run(_ connection: Connection) { result = Result { try body(connection) } }

    var hasFailed: Bool { if case .success = result { false } else { true } }

    func committed() {
        if case .success(let value) = result { onCommit?(value) }
    }

    func answer(_ failure: (any Error)?) {
        switch (failure, result) {
        case (let failure?, _): continuation.resume(throwing: failure)
        case (nil, let result?): continuation.resume(with: result)
        case (nil, nil):
            continuation.resume(throwing: SQLiteError(code: 21, message: "the write did not run"))
        }
    }
}

private final class ReadItem<Value: Sendable>: WorkItem {
    private let body: @Sendable (Connection) throws -> Value
    private let continuation: CheckedContinuation<Value, any Error>

    init(
        body: @escaping @Sendable (Connection) throws -> Value,
        continuation: CheckedContinuation<Value, any Error>
    ) {
        self.body = body
        self.continuation = continuation
    }

    func run(_ connection: Connection) { continuation.resume(with: Result { try body(connection) }) }
    var hasFailed: Bool { false }
    func committed() {}
    func answer(_ failure: (any Error)?) {}
}

/// A bounded queue that threads wait on. `@unchecked Sendable`: the mutex and condition below guard every field.
private final class WorkQueue: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var items: [any WorkItem] = []
    /// Where the queue begins in `items`: taking from the front moves nothing.
    private var head = 0
    private var isClosed = false
    private let countMax: Int

    init(countMax: Int) {
        self.countMax = countMax
        pthread_mutex_init(mutex, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
        condition.deallocate()
    }

    var count: Int {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return items.count - head
    }

    /// False when the queue is full or closed.
    func add(_ item: any WorkItem) -> Bool {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        guard !isClosed, items.count - head < countMax else { return false }
        items.append(item)
        pthread_cond_signal(condition)
        return true
    }

    func close() {
        pthread_mutex_lock(mutex)
        isClosed = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(mutex)
    }

    /// Waits for work; nil once closed and empty.
    func next(max: Int) -> [any WorkItem]? {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        while head == items.count {
            if isClosed { return nil }
            pthread_cond_wait(condition, mutex)
        }
        let taken = Array(items[head...].prefix(max))
        head += taken.count
        if head == items.count {
            // A burst leaves no large array behind.
            items = []
            head = 0
        } else if head > 1024, head * 2 > items.count {
            items.removeFirst(head)
            head = 0
        }
        return taken
    }
}

/// Moves a value to a thread that owns it from then on.
private struct Unchecked<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}

private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
}

private func startThread(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let code = pthread_create(
        &thread,
        nil,
        { context in
            guard let context else { return nil }
            Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().run()
            return nil
        },
        Unmanaged.passRetained(ThreadBody(body)).toOpaque()
    )
    precondition(code == 0, "cannot start a database thread: \(String(cString: strerror(code)))")
    pthread_detach(thread)
}

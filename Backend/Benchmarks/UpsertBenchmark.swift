import HTTPMessages
import HubAPI
import HubClient
import ProcessLifecycle
import SQLiteStorage
import TidingsModels

/// Durable registration upserts per second: `PUT /{hub}/registrations/{id}`, on disk before the answer, from so many HTTP
/// clients; against the limit (SQLite with as many rows in each transaction, no HTTP) and the peer (PostgreSQL, as many
/// pgbench clients, `INSERT ... ON CONFLICT DO UPDATE`). All three write rows of one size to one disk, in turn.
struct UpsertBenchmark {
    let secondCount: Int
    private static let rowCount = 4096
    private static let clientCounts = [1, 8, 64, 256]

    func run() async throws {
        let tidings = try TidingsProcess()
        defer { tidings.stop() }
        let script = tidings.state + "/upsert.lua"
        let ids = try await registrations(tidings.client())
        try Files.replace(script, with: Array(Self.lua(ids, authorization: tidings.authorization()).utf8))
        let bare = try BareSQLite(rowCount: Self.rowCount)
        defer { bare.remove() }
        let postgres = try PostgreSQLProcess(rowCount: Self.rowCount, record: BareSQLite.record)
        defer { postgres.stop() }

        Console.print("durable upserts per second, \(Self.rowCount) registrations, \(secondCount) s each")
        for count in Self.clientCounts {
            let limit = try bare.upsertsPerSecond(group: count, seconds: secondCount)
            let ours = try Load.run(
                tidings.process,
                connections: count,
                seconds: secondCount,
                "http://\(tidings.hub)/",
                script: script
            )
            let peer = try postgres.upsertsPerSecond(clients: count, seconds: secondCount)
            let rate = ours.requestsPerSecond
            Console.print(
                "  \(count) clients  tidings \(decimal(rate, 0)) (\(decimal(ours.microsecondsPerRequest, 1)) us CPU)"
                    + "  SQLite \(decimal(limit, 0))  PostgreSQL \(decimal(peer, 0))"
                    + "  ratio to SQLite \(decimal(rate / limit, 2)), to PostgreSQL \(decimal(rate / peer, 2))"
            )
        }
    }

    private static func content(_ number: Int) throws -> RegistrationContent {
        let digits = String(number, radix: 16)
        return RegistrationContent(
            handle: try PlatformHandle(
                String(repeating: "a", count: 64 - digits.count) + digits,
                platform: .apns
            ),
            tags: [try HubTag("username:user\(number)"), try HubTag("Sports")]
        )
    }

    private func registrations(_ hub: HubClient) async throws -> [RegistrationID] {
        try await withThrowingTaskGroup(of: [RegistrationID].self) { group in
            for start in 0..<32 {
                group.addTask {
                    var ids: [RegistrationID] = []
                    for number in stride(from: start, to: Self.rowCount, by: 32) {
                        ids.append(try await hub.create(Self.content(number)).id)
                    }
                    return ids
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Each request replaces the next registration by one with a handle of its own.
    private static func lua(_ ids: [RegistrationID], authorization: String) throws -> String {
        let body = RegistrationXML.request(try content(0), id: nil)
        let handle = try content(0).handle.text
        guard let range = body.firstRange(of: handle) else {
            throw BenchmarkError("the body does not hold its handle")
        }
        return """
            local ids = { \(ids.map { "\"\($0.text)\"" }.joined(separator: ",")) }
            local head, tail = [==[\(body[..<range.lowerBound])]==], [==[\(body[range.upperBound...])]==]
            local headers = {
                ["Authorization"] = "\(authorization)",
                ["Content-Type"] = "application/atom+xml;type=entry;charset=utf-8",
            }
            local count = 0
            request = function()
                count = count + 1
                local index = count % #ids + 1
                local body = head .. string.format("%064x", index) .. tail
                return wrk.format("PUT", "/\(TidingsProcess.hubName)/registrations/" .. ids[index] .. "?api-version=2015-01", headers, body)
            end
            """
    }
}

/// SQLite as the hub's store has it (write-ahead log, `synchronous=FULL`), with nothing around it.
struct BareSQLite {
    private let folder: String
    private let connection: Connection
    private let rowCount: Int
    /// As many bytes as the store's record of a registration with two tags.
    static let record = [UInt8](repeating: 0x61, count: 160)

    init(rowCount: Int) throws {
        self.rowCount = rowCount
        folder = try Files.makeScratchFolder("tidings-benchmark-sqlite")
        connection = try Connection(path: folder + "/rows.sqlite", access: .readWrite)
        try connection.execute(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE row (id INTEGER PRIMARY KEY, record BLOB NOT NULL)"
        )
    }

    func upsertsPerSecond(group: Int, seconds: Int) throws -> Double {
        let clock = ContinuousClock()
        let start = clock.now
        var count = 0
        while clock.now - start < .seconds(seconds) {
            try connection.execute("BEGIN IMMEDIATE")
            for _ in 0..<group {
                count += 1
                try connection.run(
                    "INSERT INTO row (id, record) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET record = excluded.record",
                    .integer(count % rowCount),
                    .blob(Self.record)
                )
            }
            try connection.execute("COMMIT")
        }
        return Double(count) / ((clock.now - start) / .seconds(1))
    }

    func remove() { Files.removeTree(folder) }
}

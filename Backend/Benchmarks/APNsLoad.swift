import EventLoops
import Foundation
import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import ProcessLifecycle
import TLSTransport
import TidingsModels

/// What a sender of APNs pushes is given; `Peers/aioapns_load.py` reads the same file.
struct APNsTask: Codable {
    /// `https://localhost:port`.
    var gateway: String
    /// The file of its certificate authority.
    var authority: String
    var keyID: String
    var teamID: String
    var privateKey: String
    var topic: String
    /// As Python's `json.dumps` writes it, which aioapns uses.
    var payload: String
    var tokens: [String]
    /// Pushes that are measured; some more go before them.
    var count: Int

    /// Header fields beside topic, token and id, the same from every sender. An expiration of 0 keeps nothing in the mailbox, whose
    /// bound would be reached.
    static let headers = [("apns-push-type", "alert"), ("apns-priority", "10"), ("apns-expiration", "0")]
}

/// What that cost it.
struct PushCost: Codable {
    var count: Int
    /// Answers other than 200, and none.
    var failed: Int
    /// User and system time of the process, from the first of the measured pushes to the last answer.
    var cpuSeconds: Double

    var pushesPerCPUSecond: Double { Double(count) / cpuSeconds }
}

/// The hub's sender in a process of its own, fed as the dispatcher feeds it.
struct APNsLoad {
    /// As the dispatcher has them: targets of a block, and blocks under way.
    private static let blockCount = 1024
    private static let blocksInFlightMax = 4

    private let sender: APNsSender
    private let payload: PlatformPayload
    private let handles: [PlatformHandle]

    init(_ task: APNsTask) throws {
        guard let endpoint = HTTPURL(task.gateway), let authority = try Files.read(task.authority) else {
            throw BenchmarkError("the task names no gateway, or no certificate authority")
        }
        let settings = APNsSettings(
            endpoint: endpoint,
            credential: .token(keyID: task.keyID, teamID: task.teamID, privateKey: task.privateKey),
            topic: task.topic
        )
        let pool = HTTP2Pool(
            origin: endpoint,
            tls: try .client(trusting: authority, protocols: ["h2"]),
            on: EventLoopGroup.shared.next()
        )
        sender = try APNsSender(settings, pool: pool, time: SystemTimeSource())
        payload = PlatformPayload(
            platform: .apns,
            headers: APNsTask.headers.map { .init($0.0, $0.1) },
            body: Array(task.payload.utf8)
        )
        handles = try task.tokens.map { try PlatformHandle($0, platform: .apns) }
    }

    /// Sends a first block, which opens the connections, and then measures `count` pushes.
    func run(count: Int) async -> PushCost {
        var failed = await send(blocks(Self.blockCount))
        let blocks = blocks(count)
        let before = CPUTime.ofThisProcess
        failed += await send(blocks)
        return PushCost(count: count, failed: failed, cpuSeconds: CPUTime.ofThisProcess - before)
    }

    private func blocks(_ count: Int) -> [[PushTarget]] {
        stride(from: 0, to: count, by: Self.blockCount).map { start in
            (start..<min(count, start + Self.blockCount)).map { number in
                PushTarget(
                    handle: handles[number % handles.count],
                    deliveryID: UUID().uuidString.lowercased()
                )
            }
        }
    }

    /// - Returns: How many were not accepted.
    private func send(_ blocks: [[PushTarget]]) async -> Int {
        await withTaskGroup(of: Int.self) { group in
            var failed = 0
            for (index, block) in blocks.enumerated() {
                if index >= Self.blocksInFlightMax { failed += await group.next() ?? 0 }
                group.addTask { [sender, payload] in
                    Answers.failed(await sender.send(payload, to: block))
                }
            }
            for await more in group { failed += more }
            return failed
        }
    }
}

enum Answers {
    /// How many are refusals or failures; the first of them is told.
    static func failed(_ answers: [TargetAnswer]) -> Int {
        let failed = answers.filter { $0 != .accepted }
        if let first = failed.first { Console.error("not accepted: \(first)") }
        return failed.count
    }
}

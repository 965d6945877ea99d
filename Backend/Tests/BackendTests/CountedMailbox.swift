import DeviceLink
import PushGateway
import Synchronization
import TidingsModels

/// A mailbox that counts how many hellos are at it at once: looking for their device, or for the first time for its mail.
final class CountedMailbox: Mailbox {
    private struct Counts {
        var lookUps = 0
        var now = 0
        var peak = 0
    }
    private let mailbox: SQLiteMailbox
    private let counts = Mutex(Counts())
    /// Look-ups wait for its end.
    private let hold: Task<Void, Never>?

    init(_ mailbox: SQLiteMailbox, heldUntil hold: Task<Void, Never>? = nil) {
        self.mailbox = mailbox
        self.hold = hold
    }

    var peak: Int { counts.withLock { $0.peak } }
    var lookUpCount: Int { counts.withLock { $0.lookUps } }

    private func counted<Value>(_ work: () async throws -> Value) async throws -> Value {
        counts.withLock { counts in
            counts.lookUps += 1
            counts.now += 1
            counts.peak = max(counts.peak, counts.now)
        }
        defer { counts.withLock { $0.now -= 1 } }
        await hold?.value
        return try await work()
    }

    func isKnown(uaid: String) async throws -> Bool {
        try await counted { try await mailbox.isKnown(uaid: uaid) }
    }

    func pending(uaid: String, after: Int64, countMax: Int, now: Timestamp) async throws -> [StoredMessage] {
        func read() async throws -> [StoredMessage] {
            try await mailbox.pending(uaid: uaid, after: after, countMax: countMax, now: now)
        }
        return after == 0 ? try await counted(read) : try await read()
    }

    // MARK: What is not counted

    func register(
        uaid: String,
        channelID: String,
        platform: Platform,
        handle: PlatformHandle,
        now: Timestamp
    )
        async throws -> PlatformHandle
    {
        try await mailbox.register(
            uaid: uaid,
            channelID: channelID,
            platform: platform,
            handle: handle,
            now: now
        )
    }
    func unregister(uaid: String, channelID: String, now: Timestamp) async throws {
        try await mailbox.unregister(uaid: uaid, channelID: channelID, now: now)
    }
    func owner(_ handle: PlatformHandle) async throws -> HandleOwner? { try await mailbox.owner(handle) }
    func post(_ message: GatewayMessage, version: String, now: Timestamp) async throws -> Posted {
        try await mailbox.post(message, version: version, now: now)
    }
    func acknowledge(uaid: String, versions: [String]) async throws {
        try await mailbox.acknowledge(uaid: uaid, versions: versions)
    }
    func cancel(version: String) async throws -> Bool { try await mailbox.cancel(version: version) }
    func remove(
        _ handle: PlatformHandle,
        where fits: @escaping @Sendable ([String: String]) -> Bool
    )
        async throws -> Int
    {
        try await mailbox.remove(handle, where: fits)
    }
    func subscribe(_ handle: PlatformHandle, to topic: String) async throws -> Bool {
        try await mailbox.subscribe(handle, to: topic)
    }
    func unsubscribe(_ handle: PlatformHandle, from topic: String) async throws -> Bool {
        try await mailbox.unsubscribe(handle, from: topic)
    }
    func topics(of handle: PlatformHandle) async throws -> [String] { try await mailbox.topics(of: handle) }
    func subscribers(of topic: String) async throws -> [PlatformHandle] {
        try await mailbox.subscribers(of: topic)
    }
    func liveHandles(_ platform: Platform) async throws -> [PlatformHandle] {
        try await mailbox.liveHandles(platform)
    }
    func broadcasts() async throws -> [BroadcastID: String] { try await mailbox.broadcasts() }
    func setBroadcast(
        _ id: BroadcastID,
        version: String,
        onCommit: @escaping @Sendable () -> Void
    ) async throws
        -> Bool
    {
        try await mailbox.setBroadcast(id, version: version, onCommit: onCommit)
    }
    func removeBroadcast(_ id: BroadcastID, onCommit: @escaping @Sendable () -> Void) async throws -> Bool {
        try await mailbox.removeBroadcast(id, onCommit: onCommit)
    }
    func messageCount() async throws -> Int { try await mailbox.messageCount() }
    func sweep(now: Timestamp) async throws -> Int { try await mailbox.sweep(now: now) }
}

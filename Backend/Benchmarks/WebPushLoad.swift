import Foundation
import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// What a sender of Web Push messages is given; `Peers/pywebpush_load.py` reads the same file.
struct WebPushTask: Codable {
    /// `https://localhost:port`.
    var gateway: String
    /// The file of its certificate authority.
    var authority: String
    var endpoints: [String]
    /// Of every subscription, base64url.
    var p256dh: String
    var auth: String
    var subject: String
    var vapidPrivateKey: String
    var payload: String
    /// Messages that are only encrypted, and such that are encrypted and sent.
    var encryptedCount: Int
    var sentCount: Int
}

/// What that cost it.
struct WebPushCost: Codable {
    var encryptedCount: Int
    var encryptionSeconds: Double
    var sentCount: Int
    var sendSeconds: Double
    /// Sent messages that were not taken.
    var failed: Int
    /// Further attempts at those that had no answer.
    var repeated: Int

    var encryptedPerCPUSecond: Double { Double(encryptedCount) / encryptionSeconds }
    var sentPerCPUSecond: Double { Double(sentCount) / sendSeconds }
}

/// The hub's Web Push in a process of its own.
struct WebPushLoad {
    let task: WebPushTask
    /// One ephemeral key for each send of the hub instead of each message.
    let usesOneKeyPerSend: Bool
    /// Targets of a send, as the dispatcher has them in a block.
    private static let blockCount = 1024

    func run() async throws -> WebPushCost {
        _ = try encryptionSeconds(count: task.encryptedCount / 20)
        let encryptionSeconds = try encryptionSeconds(count: task.encryptedCount)
        let sender = try sender()
        let handles = try task.endpoints.map {
            try PlatformHandle($0, platform: .browser, keys: .init(p256dh: task.p256dh, auth: task.auth))
        }
        let first = await send(sender, targets(handles, min(task.sentCount, 256)))
        let targets = targets(handles, task.sentCount)
        let before = CPUTime.ofThisProcess
        let measured = await send(sender, targets)
        return WebPushCost(
            encryptedCount: task.encryptedCount,
            encryptionSeconds: encryptionSeconds,
            sentCount: task.sentCount,
            sendSeconds: CPUTime.ofThisProcess - before,
            failed: first.failed + measured.failed,
            repeated: measured.repeated
        )
    }

    /// Each message as the sender makes it: the subscription's keys are read, then a salt and perhaps a key are drawn.
    private func encryptionSeconds(count: Int) throws -> Double {
        let plaintext = Array(task.payload.utf8)
        var byteCount = 0
        let before = CPUTime.ofThisProcess
        var shared: P256KeyPair?
        for number in 0..<count {
            if usesOneKeyPerSend, number % Self.blockCount == 0 { shared = try .generate() }
            guard let point = Base64.decode(task.p256dh), let auth = Base64.decode(task.auth),
                let receiver = WebPushMessage.Receiver(point: point, auth: auth)
            else { throw BenchmarkError("the task's subscription keys are none") }
            byteCount += try WebPushMessage.encrypt(
                plaintext,
                to: receiver,
                sender: shared ?? .generate(),
                salt: Digests.random(WebPushMessage.saltByteCount)
            ).count
        }
        let seconds = CPUTime.ofThisProcess - before
        guard byteCount == count * (plaintext.count + WebPushMessage.overheadByteCount) else {
            throw BenchmarkError("the encrypted messages are not as long as they should be")
        }
        return seconds
    }

    private func sender() throws -> WebPushSender {
        try WebPushSender(
            WebPushSettings(
                subject: task.subject,
                publicKey: nil,
                privateKey: task.vapidPrivateKey,
                gatewayOrigins: [task.gateway],
                usesOneKeyPerSend: usesOneKeyPerSend
            ),
            client: HTTPClient(trust: OutboundTrust(authorityFiles: [task.gateway: task.authority])),
            time: SystemTimeSource()
        )
    }

    private func targets(_ handles: [PlatformHandle], _ count: Int) -> [PushTarget] {
        (0..<count).map {
            PushTarget(handle: handles[$0 % handles.count], deliveryID: UUID().uuidString.lowercased())
        }
    }

    /// A message without an answer is sent again, as the dispatcher does.
    private static let attemptCountMax = 3

    /// - Returns: How many were not accepted, and how many further attempts there were.
    private func send(_ sender: WebPushSender, _ targets: [PushTarget]) async -> (failed: Int, repeated: Int)
    {
        let payload = PlatformPayload(
            platform: .browser,
            headers: [.init("TTL", "0")],
            body: Array(task.payload.utf8)
        )
        var result = (failed: 0, repeated: 0)
        for start in stride(from: 0, to: targets.count, by: Self.blockCount) {
            var block = Array(targets[start..<min(targets.count, start + Self.blockCount)])
            for attempt in 1...Self.attemptCountMax where !block.isEmpty {
                let answers = await sender.send(payload, to: block)
                let again = zip(block, answers).filter { _, answer in
                    if case .retry = answer { attempt < Self.attemptCountMax } else { false }
                }
                result.failed += Answers.failed(answers) - again.count
                result.repeated += again.count
                block = again.map { $0.0 }
            }
        }
        return result
    }
}

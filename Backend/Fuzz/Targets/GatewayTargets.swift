import DeviceLink
import HTTPMessages
import HTTPServing
import JSONBytes
import PushCredentials
import PushGateway
import PushTelemetry
import Synchronization
import TidingsModels

/// The doors of the gateway, a whole request each: fields in lines, an empty line, the body. The request is one that the provider may
/// make; an `Authorization` of its own takes the place of the good one.
extension FuzzTarget {
    static let apnsDoor = door("apns-door", "/3/device/" + String(repeating: "ab", count: 32)) { fields in
        fields["authorization"] = "bearer " + Provider.providerToken
    }
    static let fcmDoor = door(
        "fcm-door",
        "/v1/projects/\(Provider.credentials.fcm.projectID)/messages:send"
    ) { fields in
        fields["authorization"] = "Bearer " + Provider.token("fcm:" + Provider.credentials.fcm.projectID)
    }
    static let legacyFCMDoor = door("legacy-fcm-door", "/fcm/send") { fields in
        fields["authorization"] = "key=" + Provider.credentials.fcm.serverKey
    }
    static let instanceIDDoor = door("instance-id-door", "/iid/v1:batchAdd") { fields in
        fields["authorization"] = "key=" + Provider.credentials.fcm.serverKey
    }
    static let wnsDoor = door("wns-door", "/wns/?token=a") { fields in
        fields["authorization"] = "Bearer " + Provider.token("wns")
    }
    static let mpnsDoor = door("mpns-door", "/mpns/a") { _ in }
    static let admDoor = door("adm-door", "/messaging/registrations/amzn1.a/messages") { fields in
        fields["authorization"] = "Bearer " + Provider.token("adm")
    }
    static let webPushDoor = door(
        "web-push-door",
        "/wpush/v1/" + Base64.encodeURL([UInt8](repeating: 1, count: 24))
    ) { _ in }
    /// The token services: forms with credentials and assertions.
    static let googleTokenDoor = door("google-token-door", "/token") { _ in }

    private static func door(
        _ name: String,
        _ path: String,
        _ authorize: @escaping @Sendable (inout HTTPFields) -> Void
    ) -> FuzzTarget {
        let provider = Provider()
        return FuzzTarget(name: name) { input in
            guard let first = request(input, path, authorize), let second = request(input, path, authorize)
            else { return nil }
            let (response, messages) = provider.answer(first)
            guard let response else { return "the answer waits for something" }
            let (again, same) = provider.answer(second)
            guard again?.status == response.status, same == messages else {
                return "\(response.status.code) with \(messages), and then \(again as Any) with \(same)"
            }
            guard response.status.code < 500 else { return "status \(response.status.code)" }
            if !response.status.isSuccess, !messages.isEmpty { return "refused and taken" }
            for message in messages {
                if let problem = unreadable(message) { return problem }
            }
            return nil
        }
    }

    private static func request(
        _ input: [UInt8],
        _ path: String,
        _ authorize: (inout HTTPFields) -> Void
    ) -> HTTPRequest? {
        let end = input.firstRange(of: [0x0A, 0x0A]) ?? input.endIndex..<input.endIndex
        let head = "POST \(path) HTTP/1.1\r\nHost: a\r\n"
        var bytes = Array(head.utf8)
        for line in input[..<end.lowerBound].split(separator: 0x0A) { bytes += line + [0x0D, 0x0A] }
        bytes += [0x0D, 0x0A]
        let parser = HTTP1HeadParser(limits: ServerLimits(), scheme: "https")
        guard var head = try? parser.parse(bytes[...]).request else { return nil }
        if head.fields["authorization"] == nil { authorize(&head.fields) }
        return HTTPRequest(head: head, body: .whole(Array(input[end.upperBound...])))
    }

    /// What a door takes, its device can read as it was.
    private static func unreadable(_ message: GatewayMessage) -> String? {
        let notification = DeviceNotification(
            channelID: "c",
            version: "v",
            platform: message.handle.platform == .browser ? nil : message.handle.platform,
            headers: message.headers,
            data: message.data
        )
        let frame = GatewayFrame.notification(notification)
        return unchanged(frame, frame.text) { try GatewayFrame(parsing: frame.text) }
    }
}

/// A gateway whose mailbox takes everything and keeps nothing.
private final class Provider: Sendable {
    static let credentials: GatewayCredentials = {
        do { return try .make() } catch { fatalError("no credentials: \(error)") }
    }()
    static let providerToken: String = {
        let header = JSONObject(["alg": "ES256", "kid": .string(credentials.apns.keyID)])
        let claims = JSONObject([
            "iss": .string(credentials.apns.teamID), "iat": .number(StandingTime().now.seconds),
        ])
        do { return try WebToken.sign(header: header, claims: claims, with: credentials.apns.key) } catch {
            fatalError("no provider token: \(error)")
        }
    }()

    static func token(_ purpose: String) -> String {
        AccessTokens(key: credentials.tokenKey).issue(
            purpose,
            expires: StandingTime().now + .seconds(3600)
        )
    }

    private let mailbox = TakingMailbox()
    private let gateway: PushGateway

    init() {
        gateway = PushGateway(
            mailbox: mailbox,
            credentials: Self.credentials,
            origin: { "https://a" },
            time: StandingTime(),
            log: Log("fuzz", to: .standardError(from: .error)),
            counters: Counters()
        )
    }

    /// The answer, nil when it waits for something outside, and what the mailbox got.
    func answer(_ request: HTTPRequest) -> (HTTPResponse?, [GatewayMessage]) {
        final class Answer: Sendable {
            let response = Mutex<HTTPResponse?>(nil)
        }
        let answer = Answer()
        let (gateway, executor) = (gateway, CallersExecutor())
        Task(executorPreference: executor) {
            let response = await gateway.respond(to: request)
            answer.response.withLock { $0 = response }
        }
        executor.run()
        return (answer.response.withLock { $0 }, mailbox.takeAll())
    }
}

/// Runs a task and its children on the thread of whoever calls ``run()``: the fuzzer has one, and waits for no other.
private final class CallersExecutor: TaskExecutor {
    private let jobs = Mutex<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        jobs.withLock { $0.append(job) }
    }

    /// Returns when nothing is left to run.
    func run() {
        while let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}

private struct StandingTime: TimeSource {
    var now: Timestamp { Timestamp(seconds: 1_800_000_000) }
    func sleep(until deadline: Timestamp) async throws {}
}

private final class TakingMailbox: Mailbox {
    private let messages = Mutex<[GatewayMessage]>([])

    func takeAll() -> [GatewayMessage] {
        messages.withLock { messages in
            defer { messages = [] }
            return messages
        }
    }

    func post(_ message: GatewayMessage, version: String, now: Timestamp) async throws -> Posted {
        var untraced = message
        // Another at each request.
        for name in [DeviceNotification.traceHeader, "message-id"] { untraced.headers[name] = nil }
        messages.withLock { $0.append(untraced) }
        return Posted(result: .accepted(messageID: version), uaid: nil)
    }

    func register(
        uaid: String,
        channelID: String,
        platform: Platform,
        handle: PlatformHandle,
        now: Timestamp
    ) async throws -> PlatformHandle { handle }
    func unregister(uaid: String, channelID: String, now: Timestamp) async throws {}
    func isKnown(uaid: String) async throws -> Bool { true }
    func owner(_ handle: PlatformHandle) async throws -> HandleOwner? { .live(uaid: "u", channelID: "c") }
    func pending(uaid: String, after: Int64, countMax: Int, now: Timestamp) async throws -> [StoredMessage] {
        []
    }
    func acknowledge(uaid: String, versions: [String]) async throws {}
    func cancel(version: String) async throws -> Bool { true }
    func remove(
        _ handle: PlatformHandle,
        where fits: @escaping @Sendable ([String: String]) -> Bool
    ) async throws -> Int { 0 }
    func subscribe(_ handle: PlatformHandle, to topic: String) async throws -> Bool { true }
    func unsubscribe(_ handle: PlatformHandle, from topic: String) async throws -> Bool { true }
    func topics(of handle: PlatformHandle) async throws -> [String] { ["news"] }
    func subscribers(of topic: String) async throws -> [PlatformHandle] {
        [PlatformHandle(unchecked: "f", platform: .fcmV1)]
    }
    func liveHandles(_ platform: Platform) async throws -> [PlatformHandle] {
        try await subscribers(of: "")
    }
    func broadcasts() async throws -> [BroadcastID: String] { [:] }
    func setBroadcast(
        _ id: BroadcastID,
        version: String,
        onCommit: @escaping @Sendable () -> Void
    ) async throws -> Bool { false }
    func removeBroadcast(_ id: BroadcastID, onCommit: @escaping @Sendable () -> Void) async throws -> Bool {
        false
    }
    func messageCount() async throws -> Int { 0 }
    func sweep(now: Timestamp) async throws -> Int { 0 }
}

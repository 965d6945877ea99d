import DeviceLink
import EventLoops
import HTTPMessages
import HTTPServing
import PushCredentials
import PushTelemetry
import TidingsModels
import WebSocketFraming

/// One connected device. Reads the mailbox by sequence, so that live traffic never overtakes what waited; news is
/// only a wake-up. Loop-confined, which `@unchecked Sendable` rests on.
final class DeviceConnection: WebSocketHandler, @unchecked Sendable {
    /// Messages that are sent and not acknowledged; the mailbox is not read beyond.
    static let unacknowledgedCountMax = 100
    /// Bytes queued for a slow device; the connection closes beyond.
    private static let queuedByteCountMax = 256 << 10
    private static let batchCount = 50
    /// Messages without a place in the mailbox that wait until it is read; more are dropped.
    private static let unstoredCountMax = 100

    let loop: EventLoop
    private let channel: WebSocketChannel
    private let gateway: PushGateway
    private var rules: GatewayLinkRules
    private var keepalive: KeepaliveRules
    private(set) var uaid: String?
    private var lastSequence: Int64 = 0
    /// By version, with the trace header.
    private var unacknowledged: [String: String] = [:]
    private var unstored: [DeviceNotification] = []
    private var isReading = false
    private var hasNews = false
    private var isClosed = false
    /// For hello, then for the next ping or pong.
    private var timer: LoopTimer?
    private var subscriptions = BroadcastSubscriptions()
    /// Among the hellos that wait.
    private var ticket: Int?
    /// Among those under way, until the first look into the mailbox is over.
    private var place: HelloGate.Place?

    init(_ channel: WebSocketChannel, gateway: PushGateway) {
        self.channel = channel
        self.gateway = gateway
        loop = channel.loop
        rules = GatewayLinkRules(gateway.times)
        keepalive = KeepaliveRules(now: loop.now)
        timer = LoopTimer(on: loop, after: gateway.times.hello) { [unowned self] in
            afterReading { [unowned self] in close(.handshakeTimeout) }
        }
    }

    func received(_ event: WebSocketEvent) {
        keepalive.received(now: loop.now)
        switch event {
        case .text(let text):
            do throws(LinkViolation) {
                let frame = try DeviceFrame(parsing: text)
                try act(on: try rules.received(frame, now: loop.now))
            } catch { close(error) }
        case .binary: close(.unsupported)
        case .ping, .pong, .close: break
        }
    }

    private func act(on action: GatewayLinkRules.Action) throws(LinkViolation) {
        switch action {
        case .identify(let claimed, let broadcasts): identify(claimed, broadcasts)
        case .register(let channelID, let key, let platform): register(channelID, platform ?? .browser, key)
        case .unregister(let channelID): unregister(channelID)
        case .acknowledge(let acks): acknowledge(acks)
        case .count(let code):
            gateway.counters.add(
                "gateway_nacks_total{code=\"\((301...303).contains(code) ? String(code) : "other")\"}"
            )
        case .subscribe(let known): try subscribe(known)
        case .pong: send(.pong)
        }
    }

    /// A device that claims no id is new: nothing of it is in the mailbox.
    private func identify(_ claimed: String?, _ broadcasts: [BroadcastID: String]) {
        keepAlive()
        guard let claimed else { return identified(gateway.newDeviceID(), broadcasts) }
        ticket = gateway.hellos.enter { [weak self, loop] place in
            loop.execute { [weak self] in self?.lookUp(claimed, broadcasts, place) }
        }
    }

    private func lookUp(_ claimed: String, _ broadcasts: [BroadcastID: String], _ place: HelloGate.Place) {
        guard !isClosed else { return }
        let gateway = gateway
        run({
            // Also when the device is gone: the mailbox is still at it.
            defer { withExtendedLifetime(place) {} }
            return try await gateway.mailbox.isKnown(uaid: claimed)
        }) { connection, isKnown in
            if isKnown { connection.place = place }
            connection.identified(isKnown ? claimed : gateway.newDeviceID(), broadcasts)
            if isKnown { connection.mailArrived() }
        }
    }

    private func identified(_ uaid: String, _ broadcasts: [BroadcastID: String]) {
        do throws(LinkViolation) {
            let news = try subscriptions.add(broadcasts, of: self, in: gateway.broadcasts)
            self.uaid = uaid
            send(.hello(uaid: uaid, broadcasts: news))
            gateway.router.connected(uaid, self)
            gateway.counters.add("gateway_hellos_total")
        } catch { close(error) }
    }

    /// Answers only when there is something to tell.
    private func subscribe(_ known: [BroadcastID: String]) throws(LinkViolation) {
        guard uaid != nil else {
            throw LinkViolation.state("broadcast_subscribe before hello was answered")
        }
        let news = try subscriptions.add(known, of: self, in: gateway.broadcasts)
        if !news.isEmpty { send(.broadcast(news)) }
    }

    /// A broadcast has another version.
    func broadcastChanged(_ id: BroadcastID, _ version: String, _ frame: [UInt8]) {
        guard !isClosed, subscriptions.isNews(id, version) else { return }
        send(frame)
        keepalive.sentBroadcast(now: loop.now)
        gateway.counters.add("gateway_broadcasts_sent_total")
    }

    private func register(_ channelID: String, _ platform: Platform, _ keyText: String?) {
        guard let uaid else { return close(.state("register before hello was answered")) }
        func refuse(_ reason: String) {
            send(.register(channelID: channelID, status: 400, endpoint: reason))
        }
        var key: [UInt8]?
        if let keyText, platform == .browser {
            guard let bytes = Base64.decode(keyText), (try? SigningKey.p256(point: bytes)) != nil else {
                return refuse("the key is not a P-256 public key of 65 bytes in base64url")
            }
            key = bytes
        }
        guard let handle = gateway.newHandle(platform, key: key) else {
            return refuse(
                "no front door for \(platform.appName) here; name one of apns, fcm, wns, mpns, adm in 'platform', or none for Web Push"
            )
        }
        let gateway = gateway
        run({
            try await gateway.mailbox.register(
                uaid: uaid,
                channelID: channelID,
                platform: platform,
                handle: handle,
                now: gateway.time.now
            )
        }) { connection, handle in
            connection.send(.register(channelID: channelID, status: 200, endpoint: gateway.shownText(handle)))
        }
    }

    private func unregister(_ channelID: String) {
        guard let uaid else { return close(.state("unregister before hello was answered")) }
        let gateway = gateway
        run({ try await gateway.mailbox.unregister(uaid: uaid, channelID: channelID, now: gateway.time.now) })
        { connection, _ in
            connection.send(.unregister(channelID: channelID, status: 200))
        }
    }

    /// An acknowledgement removes the message, whatever its code; unknown versions are ignored.
    private func acknowledge(_ acks: [DeviceFrame.Ack]) {
        guard let uaid else { return }
        let gateway = gateway
        for ack in acks {
            guard let trace = unacknowledged.removeValue(forKey: ack.version) else { continue }
            gateway.log.debug(
                "message_acknowledged",
                ["version": .string(ack.version), "code": .number(ack.code)],
                trace: TraceID(trace)
            )
        }
        let versions = acks.map(\.version)
        gateway.counters.add("gateway_acks_total", versions.count)
        run({ try await gateway.mailbox.acknowledge(uaid: uaid, versions: versions) }) { connection, _ in
            connection.mailArrived()
        }
    }

    /// There may be unread mail.
    func mailArrived() {
        hasNews = true
        readMailbox()
    }

    private func readMailbox() {
        guard hasNews, !isReading, !isClosed, let uaid else { return }
        let room = min(Self.batchCount, Self.unacknowledgedCountMax - unacknowledged.count)
        // Each acknowledgement, and each drained socket, comes back here.
        guard room > 0, channel.pendingByteCount < Self.queuedByteCountMax / 2 else { return }
        isReading = true
        hasNews = false
        let (gateway, place) = (gateway, place)
        self.place = nil
        let after = lastSequence
        run({
            defer { withExtendedLifetime(place) {} }
            return try await gateway.mailbox.pending(
                uaid: uaid,
                after: after,
                countMax: room,
                now: gateway.time.now
            )
        }) {
            connection,
            messages in
            connection.isReading = false
            for message in messages {
                connection.lastSequence = message.sequence
                connection.unacknowledged[message.notification.version] =
                    message.notification.headers[DeviceNotification.traceHeader] ?? ""
                connection.send(message.notification)
            }
            if messages.count == room { connection.hasNews = true }
            connection.readMailbox()
            connection.sendUnstored()
        }
    }

    /// Sends a message that is not stored, behind the mail that came before it.
    func deliver(_ notification: DeviceNotification) {
        guard unstored.count < Self.unstoredCountMax else {
            return gateway.counters.add("gateway_messages_dropped_total")
        }
        unstored.append(notification)
        sendUnstored()
    }

    private func sendUnstored() {
        guard !hasNews, !isReading else { return }
        for notification in unstored { send(notification) }
        unstored = []
    }

    private func send(_ notification: DeviceNotification) {
        gateway.log.debug(
            "message_sent",
            ["version": .string(notification.version)],
            trace: notification.trace
        )
        send(.notification(notification))
        gateway.counters.add("gateway_notifications_sent_total")
    }

    private func send(_ frame: GatewayFrame) {
        send(WebSocketEncoder.frame(.text, Array(frame.text.utf8)))
    }

    private func send(_ frame: [UInt8]) {
        guard !isClosed else { return }
        channel.send(frames: frame)
        if channel.pendingByteCount > Self.queuedByteCountMax {
            gateway.counters.add("gateway_slow_devices_closed_total")
            close(.state("the device reads too slowly"))
        }
    }

    func drained() { readMailbox() }

    /// A newer connection of this device took over.
    func replaced() { close(.state("the device connected again")) }

    func serverIsStopping() {
        close(LinkViolation(closeCode: 1001, name: "", detail: "the gateway is stopping"))
    }

    private func close(_ violation: LinkViolation) {
        guard !isClosed else { return }
        gateway.log.debug("device_closed", ["reason": .string(violation.detail)])
        isClosed = true
        channel.close(violation.closeCode, violation.name)
    }

    func closed() {
        isClosed = true
        if !unstored.isEmpty { gateway.counters.add("gateway_messages_dropped_total", unstored.count) }
        unstored = []
        timer?.cancel()
        timer = nil
        place = nil
        if let ticket { gateway.hellos.withdraw(ticket) }
        subscriptions.end(of: self, in: gateway.broadcasts)
        if let uaid { gateway.router.disconnected(uaid, self) }
    }

    /// A timer fires before the sockets are looked at: what came while the loop was busy is read first.
    private func afterReading(_ action: @escaping () -> Void) {
        timer = LoopTimer(on: loop, after: .milliseconds(1), action)
    }

    /// A ping after a quiet while; without a sign of life in time the device is gone.
    private func keepAlive(isLastLook: Bool = false) {
        timer?.cancel()
        guard !isClosed else { return }
        let time: Duration
        switch keepalive.due(now: loop.now, gateway.times) {
        case .wait(let rest): time = rest
        case .ping(let deadline):
            channel.send(frames: WebSocketEncoder.frame(.ping, []))
            time = deadline
        case .giveUp where !isLastLook:
            return afterReading { [unowned self] in keepAlive(isLastLook: true) }
        case .giveUp:
            return close(LinkViolation(closeCode: 1011, name: "PongTimeout", detail: "no pong in time"))
        }
        timer = LoopTimer(on: loop, after: time) { [unowned self] in keepAlive() }
    }

    /// Runs work off the loop and goes on with its result here; a failure closes the connection.
    private func run<Value: Sendable>(
        _ work: @escaping @Sendable () async throws -> Value,
        then: @escaping @Sendable (DeviceConnection, Value) -> Void
    ) {
        // Nobody waits: the result goes to the connection, if it is still there.
        Task.immediate(executorPreference: loop) { [weak self, loop] in
            let result: Result<Value, any Error>
            do { result = .success(try await work()) } catch { result = .failure(error) }
            let final = result
            loop.execute { [weak self] in
                guard let self, !self.isClosed else { return }
                switch final {
                case .success(let value): then(self, value)
                case .failure(let error):
                    self.gateway.log.error("mailbox_failed", ["reason": .string(String(describing: error))])
                    self.close(LinkViolation(closeCode: 1011, name: "Database", detail: "the mailbox failed"))
                }
            }
        }
    }
}

package import DeviceLink
import HTTPMessages
package import HTTPServing
package import PushTelemetry
import HubAPI
import PushCredentials
import Synchronization
package import TidingsModels

/// The push service for Linux devices, and the stand-in for the platforms' own: provider requests come in at the
/// doors (north), devices hold a WebSocket (south).
package final class PushGateway: Sendable {
    let mailbox: any Mailbox
    let router = DeviceRouter()
    /// What is under way of the hellos.
    package let hellos = HelloGate()
    package let broadcasts: BroadcastTable
    let times: GatewayLinkTimes
    let time: any TimeSource
    let log: Log
    let counters: Counters
    let credentials: GatewayCredentials
    /// How providers reach the gateway, for channel URIs: `https://localhost:8082`.
    private let origin: @Sendable () -> String
    private let apns: APNsDoor
    private let googleTokens: GoogleTokenService
    private let fcm: FCMDoor
    private let instanceIDs: InstanceIDDoor
    private let legacyFCM: LegacyFCMDoor
    private let wns: WNSDoor
    private let webPush: WebPushDoor
    private let mpns: MPNSDoor
    private let adm: ADMDoor
    /// What goes wrong on demand; nil in production.
    private let faults: FaultTable?

    package init(
        mailbox: any Mailbox,
        credentials: GatewayCredentials,
        origin: @escaping @Sendable () -> String,
        time: any TimeSource,
        log: Log,
        counters: Counters,
        broadcasts: [BroadcastID: String] = [:],
        times: GatewayLinkTimes = GatewayLinkTimes(),
        faults: FaultTable? = nil
    ) {
        self.broadcasts = BroadcastTable(broadcasts)
        self.times = times
        self.faults = faults
        self.mailbox = mailbox
        self.credentials = credentials
        self.origin = origin
        self.time = time
        self.log = log
        self.counters = counters
        let tokens = AccessTokens(key: credentials.tokenKey)
        apns = APNsDoor(credentials: credentials.apns, time: time)
        googleTokens = GoogleTokenService(
            credentials: credentials.fcm,
            tokens: tokens,
            time: time,
            origin: origin
        )
        let delivery = FCMDelivery(mailbox: mailbox, time: time)
        let access = FCMAccess(credentials: credentials.fcm, tokens: tokens, time: time)
        fcm = FCMDoor(access: access, delivery: delivery)
        instanceIDs = InstanceIDDoor(access: access, mailbox: mailbox)
        legacyFCM = LegacyFCMDoor(access: access, delivery: delivery)
        let isConnected = { @Sendable [router] (handle: PlatformHandle) async -> Bool in
            guard case .live(let uaid, _)? = try? await mailbox.owner(handle) else { return false }
            return router.isConnected(uaid)
        }
        wns = WNSDoor(
            credentials: credentials.wns,
            tokens: tokens,
            time: time,
            mailbox: mailbox,
            isConnected: isConnected
        )
        webPush = WebPushDoor(time: time, origin: origin) { try await mailbox.cancel(version: $0) }
        mpns = MPNSDoor(time: time, isConnected: isConnected)
        adm = ADMDoor(credentials: credentials.adm, tokens: tokens, time: time)
    }

    /// Devices that are connected.
    package var deviceCount: Int { router.count }

    /// Messages that wait for their devices.
    package func messageCount() async throws -> Int { try await mailbox.messageCount() }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let segments = request.target.segments
        if segments.isEmpty {
            if WebSocketHandshake.isRequested(request.head) { return acceptDevice(request) }
            return HTTPResponse(
                200,
                ["Content-Type": "text/plain; charset=utf-8"],
                text:
                    "Tidings push gateway. Devices connect here by WebSocket (autopush); providers send to /3/device/{token} "
                    + "(APNs), /v1/projects/{project}/messages:send (FCM), /wns/ (WNS), /wpush/ (Web Push), /mpns/ (MPNS) "
                    + "and /messaging/registrations/{id}/messages (ADM).\n"
            )
        }
        // Without one each message gets its own.
        return await TraceID.$current.withValue(TraceID(parent: request.fields[HubHeader.traceParent])) {
            await respond(to: request, door: segments[0])
        }
    }

    private func respond(to request: HTTPRequest, door: String) async -> HTTPResponse {
        guard let faults else { return opening(request, await answer(to: request, door: door, post)) }
        if door == "-" { return await FaultEdge(table: faults).respond(to: request) }
        let transport = Mutex<TransportFault?>(nil)
        var response = opening(
            request,
            await answer(to: request, door: door) { message in
                try await self.post(message, faults) { fault in transport.withLock { $0 = fault } }
            }
        )
        if let fault = transport.withLock({ $0 }) { response.fault = fault }
        return response
    }

    /// Lets a connection that began with one stream have more, once its provider is known.
    private func opening(_ request: HTTPRequest, _ response: HTTPResponse) -> HTTPResponse {
        guard let connection = request.connection else { return response }
        // A refused provider is not known yet.
        let isKnown = ![401, 403].contains(response.status.code)
        guard isKnown, connection.update(APNsConnectionRules(), { $0.open() }) else { return response }
        var response = response
        response.fault = .streamLimit(connection.streamCountMax)
        return response
    }

    /// `/-/broadcasts`, for who may reach it.
    package func respondToOperator(_ request: HTTPRequest) async -> HTTPResponse {
        await BroadcastEdge(table: broadcasts, mailbox: mailbox, log: log, counters: counters)
            .respond(to: request)
    }

    /// Takes a message unless a fault is due.
    private func post(
        _ message: GatewayMessage,
        _ faults: FaultTable,
        _ misbehave: @Sendable (TransportFault) -> Void
    ) async throws -> PostResult {
        switch faults.fault(message.handle.platform, shown: shownText(message.handle)) {
        case nil: break
        case .answer(let answer)?: return .faulted(answer)
        // Real time: what it tries is the waiting of a client.
        case .delay(let time)?: try await Task.sleep(for: time)
        case .transport(let fault)?:
            misbehave(fault)
            return .dropped
        case .dropAnswer?: misbehave(.close)
        case .beside(let fault)?: misbehave(fault)
        }
        return try await post(message)
    }

    private func answer(
        to request: HTTPRequest,
        door: String,
        _ post: @escaping PostMessage
    ) async -> HTTPResponse {
        switch door {
        case "3": return await apns.respond(to: request, post: post)
        case "token": return await googleTokens.respond(to: request)
        case "v1": return await fcm.respond(to: request, post: post)
        case "iid": return await instanceIDs.respond(to: request)
        case "fcm", "gcm": return await legacyFCM.respond(to: request, post: post)
        case "wpush", "m": return await webPush.respond(to: request, post: post)
        case "mpns": return await mpns.respond(to: request, post: post)
        case "auth", "messaging": return await adm.respond(to: request, post: post)
        case "accesstoken.srf", "wns": return await wns.respond(to: request, post: post)
        // `/{tenant}/oauth2/v2.0/token`: Entra's token service.
        case _ where request.target.segments.dropFirst() == ["oauth2", "v2.0", "token"]:
            return await wns.respond(to: request, post: post)
        default:
            return HTTPResponse(
                404,
                ["Content-Type": "text/plain; charset=utf-8"],
                text: "There is nothing here.\n"
            )
        }
    }

    private func acceptDevice(_ request: HTTPRequest) -> HTTPResponse {
        let offers = request.fields.has("push-notification", in: "Sec-WebSocket-Protocol")
        return WebSocketHandshake.response(
            to: request.head,
            WebSocketAcceptance(subprotocol: offers ? "push-notification" : nil) { channel in
                DeviceConnection(channel, gateway: self)
            }
        )
    }

    /// Takes a message: it is on disk, or with its connected device, when this returns.
    private func post(_ message: GatewayMessage) async throws -> PostResult {
        let version = Hex.encode(Digests.random(16))
        return try await TraceID.$current.withValue(TraceID.current ?? TraceID(version)) {
            try await post(message, version)
        }
    }

    private func post(_ untraced: GatewayMessage, _ version: String) async throws -> PostResult {
        var message = untraced
        message.headers[DeviceNotification.traceHeader] = TraceID.current?.text
        log.debug(
            "message_arrived",
            ["platform": .string(message.handle.platform.appName), "version": .string(version)]
        )
        let posted = try await mailbox.post(message, version: version, now: time.now)
        counters.add("gateway_messages_total{platform=\"\(message.handle.platform.appName)\"}")
        if case .repeated = posted.result { counters.add("gateway_messages_repeated_total") }
        guard let uaid = posted.uaid else { return posted.result }
        if message.expires != nil {
            router.wake(uaid)
            return posted.result
        }
        guard case .live(_, let channelID)? = try await mailbox.owner(message.handle),
            router.deliverNow(
                uaid,
                DeviceNotification(
                    channelID: channelID,
                    version: version,
                    platform: message.linkPlatform,
                    headers: message.headers,
                    data: message.data
                )
            )
        else {
            counters.add("gateway_messages_dropped_total")
            return .dropped
        }
        return posted.result
    }

    /// Drops what has expired. Called now and then by whoever runs the gateway.
    package func sweep() async throws {
        let count = try await mailbox.sweep(now: time.now)
        if count > 0 { counters.add("gateway_messages_expired_total", count) }
    }

    /// A handle as the device and its app see it: APNs tokens in lower case, as iOS apps print them; channels as URIs.
    func shownText(_ handle: PlatformHandle) -> String {
        switch handle.platform {
        case .apns: handle.text.lowercased()
        case .wns, .mpns, .browser: origin() + handle.text
        default: handle.text
        }
    }

    func newDeviceID() -> String { Hex.encode(Digests.random(16)) }

    /// A fresh handle of the platform's shape; nil when there is no door for it.
    ///
    /// - Parameter key: The application server's, which a Web Push subscription is restricted to.
    func newHandle(_ platform: Platform, key: [UInt8]? = nil) -> PlatformHandle? {
        let text: String
        switch platform {
        case .apns: text = Hex.encode(Digests.random(32)).uppercased()
        case .gcm, .fcmV1:
            text = Base64.encodeURL(Digests.random(16)) + ":APA91b" + Base64.encodeURL(Digests.random(96))
        case .wns: text = "/wns/?token=" + PercentEncoding.encode(Base64.encode(Digests.random(48)))
        case .browser: return WebPushEndpoint.make(key: key).handle
        case .mpns: text = "/mpns/" + Base64.encodeURL(Digests.random(48))
        case .adm: text = "amzn1.adm-registration.v3." + Base64.encodeURL(Digests.random(96))
        case .baidu, .xiaomi: return nil
        }
        return PlatformHandle(unchecked: text, platform: platform == .gcm ? .fcmV1 : platform)
    }
}

/// How a door hands a message over.
typealias PostMessage = @Sendable (GatewayMessage) async throws -> PostResult

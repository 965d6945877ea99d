import EventLoops
import HTTPMessages
import HubCore
import OutboundHTTP
import PlatformSenders
import PushCredentials
import TLSTransport
import TidingsModels

/// What a hub's senders need, wherever it comes from: the configuration, the hub's description, or the own gateway. Platforms without
/// credentials are nil.
struct SenderSettings {
    var apns: APNsSettings?
    var fcmV1: FCMv1Settings?
    var wns: WNSSettings?
    var webPush: WebPushSettings?
    var mpns: MPNSSettings?
    var adm: ADMSettings?
    var baidu: BaiduSettings?
    var xiaomi: XiaomiSettings?
}

/// Makes a hub's senders.
struct SenderAssembly {
    let time: any TimeSource
    /// Trust towards the own gateway alone; nil outside development.
    let gatewayAuthority: (origin: String, file: String, pem: [UInt8])?

    private func trust() -> OutboundTrust {
        var trust = OutboundTrust()
        if let gatewayAuthority { trust.authorityFiles[gatewayAuthority.origin] = gatewayAuthority.file }
        return trust
    }

    private func pool(_ endpoint: HTTPURL, _ identity: ClientIdentity? = nil) throws -> HTTP2Pool {
        let pem = gatewayAuthority?.origin == endpoint.origin ? gatewayAuthority?.pem : nil
        let tls =
            endpoint.scheme == "https"
            ? try TLSContext.client(
                trusting: pem,
                showing: identity.map { ($0.certificateChain, $0.privateKey) },
                protocols: ["h2"]
            ) : nil
        return HTTP2Pool(origin: endpoint, tls: tls, on: EventLoopGroup.shared.next())
    }

    /// - Parameter current: Senders that stay when their settings have not changed: a new one would begin with a new access
    ///   token, and Apple refuses those that come too often.
    func senders(
        _ settings: SenderSettings,
        current: SenderDirectory = SenderDirectory()
    ) throws -> [Platform: any PlatformSender] {
        var senders: [Platform: any PlatformSender] = [:]
        let client = HTTPClient(trust: trust())
        if let apns = settings.apns {
            let known = (current[.apns] as? APNsSender).flatMap { $0.settings == apns ? $0 : nil }
            var identity: ClientIdentity?
            if case .certificate(let shown) = apns.credential { identity = shown }
            senders[.apns] =
                try known ?? APNsSender(apns, pool: try pool(apns.endpoint, identity), time: time)
        }
        if let fcm = settings.fcmV1 {
            let known = (current[.fcmV1] as? FCMv1Sender).flatMap { $0.settings == fcm ? $0 : nil }
            senders[.fcmV1] =
                try known ?? FCMv1Sender(fcm, pool: try pool(fcm.endpoint), client: client, time: time)
        }
        if let wns = settings.wns {
            let known = (current[.wns] as? WNSSender).flatMap { $0.settings == wns ? $0 : nil }
            senders[.wns] = known ?? WNSSender(wns, client: client, time: time)
        }
        if let webPush = settings.webPush {
            let known = (current[.browser] as? WebPushSender).flatMap { $0.settings == webPush ? $0 : nil }
            senders[.browser] = try known ?? WebPushSender(webPush, client: client, time: time)
        }
        if let mpns = settings.mpns {
            let known = (current[.mpns] as? MPNSSender).flatMap { $0.settings == mpns ? $0 : nil }
            let identity = mpns.identity.map { ($0.certificateChain, $0.privateKey) }
            senders[.mpns] =
                known ?? MPNSSender(mpns, client: HTTPClient(trust: trust(), showing: identity))
        }
        if let adm = settings.adm {
            let known = (current[.adm] as? ADMSender).flatMap { $0.settings == adm ? $0 : nil }
            senders[.adm] = known ?? ADMSender(adm, client: client, time: time)
        }
        if let baidu = settings.baidu {
            let known = (current[.baidu] as? BaiduSender).flatMap { $0.settings == baidu ? $0 : nil }
            senders[.baidu] = known ?? BaiduSender(baidu, client: client, time: time)
        }
        if let xiaomi = settings.xiaomi {
            let known = (current[.xiaomi] as? XiaomiSender).flatMap { $0.settings == xiaomi ? $0 : nil }
            senders[.xiaomi] = known ?? XiaomiSender(xiaomi, client: client)
        }
        return senders
    }
}

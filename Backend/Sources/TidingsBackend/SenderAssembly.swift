import EventLoops
import HTTPMessages
import HubCore
import JSONBytes
import OutboundHTTP
import PlatformSenders
import ProcessLifecycle
import PushCredentials
import PushGateway
import TLSTransport
import TidingsModels

/// Makes a hub's senders from its settings, or from the credentials of the own gateway.
struct SenderAssembly {
    let time: any TimeSource
    /// Trust towards the own gateway alone; nil outside development.
    let gatewayAuthority: (origin: String, file: String, pem: [UInt8])?

    private func trust() -> OutboundTrust {
        var trust = OutboundTrust()
        if let gatewayAuthority { trust.authorityFiles[gatewayAuthority.origin] = gatewayAuthority.file }
        return trust
    }

    private func pool(_ endpoint: HTTPURL) throws -> HTTP2Pool {
        let pem = gatewayAuthority?.origin == endpoint.origin ? gatewayAuthority?.pem : nil
        let tls = endpoint.scheme == "https" ? try TLSContext.client(trusting: pem, protocols: ["h2"]) : nil
        return HTTP2Pool(origin: endpoint, tls: tls, on: EventLoopGroup.shared.next())
    }

    /// - Parameter current: Senders that stay when their settings have not changed: a new one would begin with a new access
    ///   token, and Apple refuses those that come too often.
    func senders(
        _ settings: ServerConfiguration.HubSettings,
        current: SenderDirectory = SenderDirectory()
    ) throws -> [Platform: any PlatformSender] {
        var senders: [Platform: any PlatformSender] = [:]
        let client = HTTPClient(trust: trust())
        if let object = settings.apns {
            let reader = SettingsReader(
                object,
                "hub '\(settings.name)', apns",
                known: ["endpoint", "keyId", "teamId", "bundleId", "keyFile"]
            )
            try reader.check()
            let endpoint = try reader.url("endpoint", default: "https://api.push.apple.com")
            let apns = APNsSettings(
                endpoint: endpoint,
                keyID: try reader.text("keyId"),
                teamID: try reader.text("teamId"),
                bundleID: try reader.text("bundleId"),
                privateKey: String(decoding: try reader.file("keyFile"), as: UTF8.self)
            )
            let known = (current[.apns] as? APNsSender).flatMap { $0.settings == apns ? $0 : nil }
            senders[.apns] = try known ?? APNsSender(apns, pool: try pool(endpoint), time: time)
        }
        if let object = settings.fcmV1 {
            let reader = SettingsReader(
                object,
                "hub '\(settings.name)', fcmV1",
                known: ["endpoint", "serviceAccountFile"]
            )
            try reader.check()
            let endpoint = try reader.url("endpoint", default: "https://fcm.googleapis.com")
            let fcm = try FCMv1Settings(
                serviceAccount: try reader.file("serviceAccountFile"),
                endpoint: endpoint,
                // Google would not know the header; a gateway of ours drops repeats by it.
                sendsDeliveryID: endpoint.host != "fcm.googleapis.com"
            )
            let known = (current[.fcmV1] as? FCMv1Sender).flatMap { $0.settings == fcm ? $0 : nil }
            senders[.fcmV1] =
                try known ?? FCMv1Sender(fcm, pool: try pool(endpoint), client: client, time: time)
        }
        if let object = settings.wns {
            let reader = SettingsReader(
                object,
                "hub '\(settings.name)', wns",
                known: ["packageSid", "secretKey", "tokenURL", "scope", "gatewayOrigins"]
            )
            try reader.check()
            let wns = WNSSettings(
                packageSID: try reader.text("packageSid"),
                secretKey: try reader.text("secretKey"),
                tokenURL: try reader.url("tokenURL", default: "https://login.live.com/accesstoken.srf"),
                scope: object["scope"]?.stringValue ?? "notify.windows.com",
                gatewayOrigins: Set((object["gatewayOrigins"]?.arrayValue ?? []).compactMap(\.stringValue)),
                sendsDeliveryID: object["gatewayOrigins"] != nil
            )
            let known = (current[.wns] as? WNSSender).flatMap { $0.settings == wns ? $0 : nil }
            senders[.wns] = known ?? WNSSender(wns, client: client, time: time)
        }
        return senders
    }

    /// The senders of the credentials that a hub's description holds.
    func senders(_ hub: HubDescription, current: SenderDirectory) throws -> [Platform: any PlatformSender] {
        var senders: [Platform: any PlatformSender] = [:]
        let client = HTTPClient(trust: trust())
        let credentials = DescribedCredentials(hub)
        if let apns = try credentials.apns() {
            let known = (current[.apns] as? APNsSender).flatMap { $0.settings == apns ? $0 : nil }
            senders[.apns] = try known ?? APNsSender(apns, pool: try pool(apns.endpoint), time: time)
        }
        if let fcm = try credentials.fcmV1() {
            let known = (current[.fcmV1] as? FCMv1Sender).flatMap { $0.settings == fcm ? $0 : nil }
            senders[.fcmV1] =
                try known ?? FCMv1Sender(fcm, pool: try pool(fcm.endpoint), client: client, time: time)
        }
        if let wns = try credentials.wns() {
            let known = (current[.wns] as? WNSSender).flatMap { $0.settings == wns ? $0 : nil }
            senders[.wns] = known ?? WNSSender(wns, client: client, time: time)
        }
        return senders
    }

    /// The senders of a development hub: all three towards the own gateway.
    func senders(
        gateway credentials: GatewayCredentials,
        origin: String,
        bundleID: String
    ) throws -> [Platform: any PlatformSender] {
        guard let endpoint = HTTPURL(origin), let tokenURL = HTTPURL(origin + "/accesstoken.srf") else {
            throw ConfigurationError("gateway.publicURL '\(origin)' is not a URL")
        }
        let client = HTTPClient(trust: trust())
        let apns = APNsSettings(
            endpoint: endpoint,
            keyID: credentials.apns.keyID,
            teamID: credentials.apns.teamID,
            bundleID: bundleID,
            privateKey: try credentials.apns.key.privateKeyPEM()
        )
        let fcm = try FCMv1Settings(
            serviceAccount: try credentials.serviceAccount(origin: origin),
            endpoint: endpoint,
            sendsDeliveryID: true
        )
        let wns = WNSSettings(
            packageSID: credentials.wns.packageSID,
            secretKey: credentials.wns.secretKey,
            tokenURL: tokenURL,
            gatewayOrigins: [endpoint.origin],
            sendsDeliveryID: true
        )
        return [
            .apns: try APNsSender(apns, pool: try pool(endpoint), time: time),
            .fcmV1: FCMv1Sender(fcm, pool: try pool(endpoint), client: client, time: time),
            .wns: WNSSender(wns, client: client, time: time),
        ]
    }
}

/// Reads one object of the configuration and names what is wrong with it.
private struct SettingsReader {
    let object: JSONObject
    let place: String
    let known: Set<String>

    init(_ object: JSONObject, _ place: String, known: Set<String>) {
        self.object = object
        self.place = place
        self.known = known
    }

    func check() throws(ConfigurationError) {
        for member in object.members where !known.contains(member.name) {
            throw ConfigurationError(
                "\(place): the key '\(member.name)' is not known. Known are \(known.sorted().joined(separator: ", "))"
            )
        }
    }

    func text(_ name: String) throws(ConfigurationError) -> String {
        guard let text = object[name]?.stringValue, !text.isEmpty else {
            throw ConfigurationError("\(place): '\(name)' is missing")
        }
        return text
    }

    func url(_ name: String, default fallback: String) throws(ConfigurationError) -> HTTPURL {
        let text = object[name]?.stringValue ?? fallback
        guard let url = HTTPURL(text) else {
            throw ConfigurationError("\(place): '\(name)' '\(text)' is not an http or https URL")
        }
        return url
    }

    func file(_ name: String) throws -> [UInt8] {
        let path = try text(name)
        guard let bytes = try Files.read(path) else {
            throw ConfigurationError("\(place): the file '\(path)' of '\(name)' does not exist")
        }
        return bytes
    }
}

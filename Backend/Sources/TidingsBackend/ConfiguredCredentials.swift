import HTTPMessages
import JSONBytes
import PlatformSenders
import PushCredentials
import PushGateway
import TidingsModels

extension SenderSettings {
    /// From `hub.hubs` of the configuration.
    init(_ hub: ServerConfiguration.HubSettings) throws {
        func reader(_ platform: Platform, _ known: Set<String>) throws -> SettingsReader? {
            guard let object = hub.credentials[platform] else { return nil }
            let reader = SettingsReader(object, "hub '\(hub.name)', \(platform.rawValue)", known: known)
            try reader.check()
            return reader
        }
        apns = try reader(
            .apns,
            [
                "endpoint", "bundleId", "keyId", "teamId", "keyFile", "certificateFile",
                "certificatePasswordFile",
            ]
        )?.apns()
        if let reader = try reader(.fcmV1, ["endpoint", "serviceAccountFile"]) {
            let endpoint = try reader.url("endpoint", default: "https://fcm.googleapis.com")
            fcmV1 = try FCMv1Settings(
                serviceAccount: try reader.file("serviceAccountFile"),
                endpoint: endpoint,
                // Google would not know the header; a gateway of ours drops repeats by it.
                sendsDeliveryID: endpoint.host != "fcm.googleapis.com"
            )
        }
        if let reader = try reader(.wns, ["packageSid", "secretKey", "tokenURL", "scope", "gatewayOrigins"]) {
            wns = WNSSettings(
                packageSID: try reader.text("packageSid"),
                secretKey: try reader.text("secretKey"),
                tokenURL: try reader.url("tokenURL", default: "https://login.live.com/accesstoken.srf"),
                scope: reader.object["scope"]?.stringValue,
                gatewayOrigins: try reader.origins("gatewayOrigins"),
                sendsDeliveryID: reader.object["gatewayOrigins"] != nil
            )
        }
        if let reader = try reader(
            .browser,
            ["subject", "publicKey", "privateKeyFile", "gatewayOrigins", "ephemeralKey"]
        ) {
            let key = String(decoding: try reader.file("privateKeyFile"), as: UTF8.self)
            let mode = reader.object["ephemeralKey"]?.stringValue ?? "message"
            guard mode == "message" || mode == "send" else {
                throw ConfigurationError("\(reader.place): 'ephemeralKey' is 'message' or 'send'")
            }
            do {
                webPush = try WebPushSettings(
                    subject: try reader.text("subject"),
                    publicKey: reader.object["publicKey"]?.stringValue,
                    privateKey: ASCII.trimmed(key[...]),
                    gatewayOrigins: try reader.origins("gatewayOrigins"),
                    usesOneKeyPerSend: mode == "send"
                )
            } catch let failure as WebPushSettings.Failure {
                throw ConfigurationError("\(reader.place): \(failure)")
            }
        }
        mpns = try reader(.mpns, ["gatewayOrigins", "certificateFile", "certificatePasswordFile"])?.mpns()
        adm = try reader(.adm, ["clientId", "clientSecret", "tokenURL", "sendURL"])?.adm()
        baidu = try reader(.baidu, ["apiKey", "secretKey", "endpoint"])?.baidu()
        xiaomi = try reader(.xiaomi, ["appSecret", "endpoint", "packageName"])?.xiaomi()
    }

    /// From the credentials that a hub's description holds.
    init(_ hub: HubDescription) throws {
        let credentials = DescribedCredentials(hub)
        apns = try credentials.apns()
        fcmV1 = try credentials.fcmV1()
        wns = try credentials.wns()
        webPush = try credentials.webPush()
        mpns = try credentials.mpns()
        adm = try credentials.adm()
        baidu = try credentials.baidu()
        xiaomi = try credentials.xiaomi()
    }

    /// Those of a development hub: all towards the own gateway.
    init(gateway credentials: GatewayCredentials, origin: String) throws {
        guard let endpoint = HTTPURL(origin), let tokenURL = HTTPURL(origin + "/accesstoken.srf") else {
            throw ConfigurationError("gateway.publicURL '\(origin)' is not a URL")
        }
        apns = APNsSettings(
            endpoint: endpoint,
            credential: .token(
                keyID: credentials.apns.keyID,
                teamID: credentials.apns.teamID,
                privateKey: try credentials.apns.key.privateKeyPEM()
            ),
            topic: GatewayCredentials.bundleID
        )
        fcmV1 = try FCMv1Settings(
            serviceAccount: try credentials.serviceAccount(origin: origin),
            endpoint: endpoint,
            sendsDeliveryID: true
        )
        wns = WNSSettings(
            packageSID: credentials.wns.packageSID,
            secretKey: credentials.wns.secretKey,
            tokenURL: tokenURL,
            gatewayOrigins: [endpoint.origin],
            sendsDeliveryID: true
        )
        webPush = try WebPushSettings(
            subject: credentials.webPush.subject,
            publicKey: nil,
            privateKey: credentials.webPush.privateKey,
            gatewayOrigins: [endpoint.origin]
        )
        mpns = MPNSSettings(gatewayOrigins: [endpoint.origin])
        guard let admTokenURL = HTTPURL(origin + "/auth/O2/token") else {
            throw ConfigurationError("gateway.publicURL '\(origin)' is not a URL")
        }
        adm = try ADMSettings(
            clientID: credentials.adm.clientID,
            clientSecret: credentials.adm.clientSecret,
            tokenURL: admTokenURL,
            sendURL: origin + "/messaging/registrations/{0}/messages"
        )
    }
}

import HTTPMessages
package import JSONBytes
package import PushCredentials

/// The secrets that the gateway issues, in place of Apple's, Google's, Microsoft's and Amazon's consoles.
package struct GatewayCredentials: Sendable {
    package struct APNs: Sendable {
        package var keyID: String
        package var teamID: String
        package var key: SigningKey
        /// For providers that have no token.
        package var certificate: ClientIdentity

        static func newCertificate() throws(CredentialError) -> ClientIdentity {
            try .make(name: "Apple Push Services: \(bundleID)", userID: bundleID)
        }
    }
    package struct FCM: Sendable {
        package var projectID: String
        package var clientEmail: String
        package var privateKeyID: String
        package var key: SigningKey
        /// Of the legacy protocol: `Authorization: key=…`.
        package var serverKey: String

        static func newServerKey() -> String { "AAAA" + Base64.encodeURL(Digests.random(24)) }
    }
    package struct WNS: Sendable {
        package var packageSID: String
        package var secretKey: String
    }

    /// A security profile of Amazon's developer console.
    package struct ADM: Sendable {
        package var clientID: String
        package var clientSecret: String

        static func make() -> ADM {
            ADM(
                clientID: "amzn1.application-oa2-client." + Hex.encode(Digests.random(16)),
                clientSecret: Hex.encode(Digests.random(32))
            )
        }
    }

    /// The application server that a development hub is: its VAPID keys, base64url.
    package struct WebPush: Sendable {
        package var subject = "mailto:push@tidings.invalid"
        package var privateKey: String
        package var publicKey: String

        static func make() throws(CredentialError) -> WebPush {
            let pair = try P256KeyPair.generate()
            return WebPush(
                privateKey: Base64.encodeURL(pair.scalar),
                publicKey: Base64.encodeURL(pair.point)
            )
        }
    }

    /// The app that the issued certificate is for: the topic of a push without `apns-topic`.
    package static let bundleID = "net.example.tidings"

    package var apns: APNs
    package var fcm: FCM
    package var wns: WNS
    package var webPush: WebPush
    package var adm: ADM
    /// Authenticates the access tokens that the gateway hands out, so that they survive a restart.
    package var tokenKey: [UInt8]

    /// New credentials.
    package static func make() throws(CredentialError) -> GatewayCredentials {
        func identifier(_ count: Int) -> String {
            let alphabet = Array("ABCDEFGHJKLMNPQRSTUVWXYZ23456789")
            return String(Digests.random(count).map { alphabet[Int($0) % alphabet.count] })
        }
        return GatewayCredentials(
            apns: APNs(
                keyID: identifier(10),
                teamID: identifier(10),
                key: try .generate(.es256),
                certificate: try APNs.newCertificate()
            ),
            fcm: FCM(
                projectID: "tidings-" + identifier(6).lowercased(),
                clientEmail: "push@tidings.invalid",
                privateKeyID: Hex.encode(Digests.random(20)),
                key: try .generate(.rs256),
                serverKey: FCM.newServerKey()
            ),
            wns: WNS(
                packageSID: "ms-app://s-1-15-2-\(Hex.encode(Digests.random(8)))",
                secretKey: Base64.encodeURL(Digests.random(24))
            ),
            webPush: try .make(),
            adm: .make(),
            tokenKey: Digests.random(32)
        )
    }

    /// The form that is kept on disk.
    package func json() throws(CredentialError) -> JSONValue {
        .object([
            "apns": .object([
                "keyId": .string(apns.keyID), "teamId": .string(apns.teamID),
                "privateKey": .string(try apns.key.privateKeyPEM()),
                "certificate": .string(String(decoding: apns.certificate.pem, as: UTF8.self)),
            ]),
            "fcm": .object([
                "projectId": .string(fcm.projectID), "clientEmail": .string(fcm.clientEmail),
                "privateKeyId": .string(fcm.privateKeyID), "privateKey": .string(try fcm.key.privateKeyPEM()),
                "serverKey": .string(fcm.serverKey),
            ]),
            "wns": .object(["packageSid": .string(wns.packageSID), "secretKey": .string(wns.secretKey)]),
            "webPush": .object([
                "privateKey": .string(webPush.privateKey), "publicKey": .string(webPush.publicKey),
            ]),
            "adm": .object([
                "clientId": .string(adm.clientID), "clientSecret": .string(adm.clientSecret),
            ]),
            "tokenKey": .string(Base64.encodeURL(tokenKey)),
        ])
    }

    /// Nil when a member is missing. Keys that are newer than the file are made: those of Web Push and ADM, FCM's server key, and APNs' certificate.
    package init?(_ json: JSONValue) throws(CredentialError) {
        func text(_ part: String, _ name: String) -> String? { json[part]?[name]?.stringValue }
        guard let apnsKeyID = text("apns", "keyId"), let teamID = text("apns", "teamId"),
            let apnsKey = text("apns", "privateKey").flatMap({ try? SigningKey.privateKey($0) }),
            let projectID = text("fcm", "projectId"), let email = text("fcm", "clientEmail"),
            let fcmKeyID = text("fcm", "privateKeyId"),
            let fcmKey = text("fcm", "privateKey").flatMap({ try? SigningKey.privateKey($0) }),
            let sid = text("wns", "packageSid"), let secret = text("wns", "secretKey"),
            let tokenKey = json["tokenKey"]?.stringValue.flatMap({ Base64.decode($0) })
        else { return nil }
        let webPush: WebPush
        if let privateKey = text("webPush", "privateKey"), let publicKey = text("webPush", "publicKey") {
            webPush = WebPush(privateKey: privateKey, publicKey: publicKey)
        } else {
            webPush = try .make()
        }
        let certificate: ClientIdentity
        if let pem = text("apns", "certificate") {
            certificate = try ClientIdentity(Array(pem.utf8))
        } else {
            certificate = try APNs.newCertificate()
        }
        let adm: ADM
        if let id = text("adm", "clientId"), let secret = text("adm", "clientSecret") {
            adm = ADM(clientID: id, clientSecret: secret)
        } else {
            adm = .make()
        }
        self.init(
            apns: APNs(
                keyID: apnsKeyID,
                teamID: teamID,
                key: apnsKey,
                certificate: certificate
            ),
            fcm: FCM(
                projectID: projectID,
                clientEmail: email,
                privateKeyID: fcmKeyID,
                key: fcmKey,
                serverKey: text("fcm", "serverKey") ?? FCM.newServerKey()
            ),
            wns: WNS(packageSID: sid, secretKey: secret),
            webPush: webPush,
            adm: adm,
            tokenKey: tokenKey
        )
    }

    private init(apns: APNs, fcm: FCM, wns: WNS, webPush: WebPush, adm: ADM, tokenKey: [UInt8]) {
        self.apns = apns
        self.fcm = fcm
        self.wns = wns
        self.webPush = webPush
        self.adm = adm
        self.tokenKey = tokenKey
    }

    /// The file that FCM libraries take, pointing at the gateway at `origin`.
    package func serviceAccount(origin: String) throws(CredentialError) -> [UInt8] {
        JSONValue.object([
            "type": "service_account", "project_id": .string(fcm.projectID),
            "private_key_id": .string(fcm.privateKeyID),
            "private_key": .string(try fcm.key.privateKeyPEM()), "client_email": .string(fcm.clientEmail),
            "client_id": "0",
            "token_uri": .string(origin + "/token"),
        ]).serialized()
    }
}

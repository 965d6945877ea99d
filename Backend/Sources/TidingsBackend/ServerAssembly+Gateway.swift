import JSONBytes
import ProcessLifecycle
import PushCredentials
import PushGateway
import PushTelemetry

/// The gateway, and what it issues to providers.
extension ServerAssembly {
    mutating func startGateway() async throws {
        guard configuration.services.contains(.gateway) else { return }
        let keyPath = configuration.statePath + "/keys/gateway.json"
        let credentials: GatewayCredentials
        if let bytes = try Files.read(keyPath) {
            guard let known = try GatewayCredentials(try JSONValue(parsing: bytes)) else {
                throw ConfigurationError("\(keyPath) is damaged")
            }
            credentials = known
            // A file of an earlier version has no certificate, and no keys for Web Push or ADM, yet.
            try Files.replace(keyPath, with: try credentials.json().serialized())
        } else {
            credentials = try GatewayCredentials.make()
            try Files.replace(keyPath, with: try credentials.json().serialized())
        }
        let mailbox = try SQLiteMailbox(path: configuration.statePath + "/gateway.sqlite")
        self.mailbox = mailbox
        add(mailbox.database, "gateway")
        // The port is known only once the gateway listens; nobody asks for the origin before.
        let origin = Holder(configuration.gatewayURL ?? "")
        let gateway = PushGateway(
            mailbox: mailbox,
            credentials: credentials,
            origin: { origin.value },
            time: time,
            log: log.named("gateway"),
            counters: counters,
            broadcasts: try await mailbox.broadcasts(),
            faults: configuration.isDevelopment ? FaultTable() : nil
        )
        let address = try listen(
            configuration.gatewayAddress,
            "gateway",
            broadcasts: { await gateway.respondToOperator($0) }
        ) { await gateway.respond(to: $0) }
        if configuration.gatewayURL == nil { origin.value = address }
        endpoints.gateway = origin.value
        self.gateway = gateway
        metrics.add(gateway)
        gatewayCredentials = credentials
        try issueFiles(credentials, origin.value)
    }

    /// The files that a provider library takes to send to this gateway.
    mutating func issueFiles(_ credentials: GatewayCredentials, _ origin: String) throws {
        let account = configuration.statePath + "/keys/fcm-service-account.json"
        try Files.replace(account, with: try credentials.serviceAccount(origin: origin))
        let key = configuration.statePath + "/keys/AuthKey_\(credentials.apns.keyID).p8"
        try Files.replace(key, with: Array(try credentials.apns.key.privateKeyPEM().utf8))
        endpoints.serviceAccountFile = account
        endpoints.apnsKeyFile = key
        endpoints.apnsKeyID = credentials.apns.keyID
        endpoints.apnsTeamID = credentials.apns.teamID
        let certificate = configuration.statePath + "/keys/apns-certificate.pem"
        try Files.replace(certificate, with: credentials.apns.certificate.pem)
        endpoints.apnsCertificateFile = certificate
        endpoints.vapidPublicKey = credentials.webPush.publicKey
    }
}

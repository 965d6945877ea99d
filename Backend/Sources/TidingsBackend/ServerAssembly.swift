import AppBackend
import EventLoops
import HTTPMessages
import HTTPServing
import HubClient
import HubCore
import HubServer
import HubStore
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import PushGateway
import PushTelemetry
import SQLiteStorage
import Synchronization
import TLSTransport
import TagIndex
import TidingsModels

/// The parts while they are put together, in the order that each needs the one before.
struct ServerAssembly {
    let configuration: ServerConfiguration
    let time: any TimeSource
    let log: Log
    let retry: RetryPolicy
    let limits: ServerLimits
    let folder: StateFolder
    let metrics = Metrics()
    let readiness = Readiness()
    let lag = LoopLag()
    var counters: Counters { metrics.counters }
    let tls: TLSContext?
    var endpoints = TidingsServer.Endpoints()
    var servers: [HTTPServer] = []
    var host: HubHost?
    /// Known once the hub listens.
    private let hubOrigin = Holder("")
    var mailbox: SQLiteMailbox?
    var gateway: PushGateway?
    var gatewayCredentials: GatewayCredentials?
    var backend: AppBackendService?
    var backendStore: BackendStore?

    init(
        _ configuration: ServerConfiguration,
        time: any TimeSource,
        log: Log,
        retry: RetryPolicy,
        limits: ServerLimits
    ) throws {
        self.configuration = configuration
        self.time = time
        self.log = log
        self.retry = retry
        self.limits = limits
        metrics.addProcess(lag)
        folder = try StateFolder(path: configuration.statePath)
        _ = try folder.folder("keys")
        _ = try folder.folder("hubs")
        _ = try folder.folder("files")
        if let configured = try Self.configuredTLS(configuration) {
            tls = configured
        } else if configuration.isDevelopment {
            let (context, file) = try Self.developmentTLS(folder)
            tls = context
            endpoints.authorityFile = file
        } else {
            tls = nil
        }
    }

    /// Nil when the configuration names no certificate.
    static func configuredTLS(_ configuration: ServerConfiguration) throws -> TLSContext? {
        guard let certificate = configuration.certificateFile, let key = configuration.privateKeyFile else {
            return nil
        }
        guard let chain = try Files.read(certificate) else {
            throw ConfigurationError("tls.certificate '\(certificate)' does not exist")
        }
        guard let keyBytes = try Files.read(key) else {
            throw ConfigurationError("tls.key '\(key)' does not exist")
        }
        do { return try TLSContext.server(certificateChain: chain, privateKey: keyBytes) } catch {
            throw ConfigurationError("tls.certificate and tls.key cannot be used: \(error)")
        }
    }

    /// The certificate authority is made once and kept; the leaf is made at each start.
    private static func developmentTLS(_ folder: StateFolder) throws -> (TLSContext, file: String) {
        let path = try folder.folder("ca")
        let authority: DevelopmentAuthority
        if let certificate = try Files.read(path + "/ca.pem"), let key = try Files.read(path + "/ca-key.pem")
        {
            authority = DevelopmentAuthority(certificate: certificate, privateKey: key)
        } else {
            authority = try DevelopmentAuthority.make()
            try Files.replace(path + "/ca-key.pem", with: authority.privateKey)
            try Files.replace(path + "/ca.pem", with: authority.certificate, mode: 0o644)
        }
        let leaf = try authority.makeLeaf()
        return (
            try TLSContext.server(certificateChain: leaf.certificateChain, privateKey: leaf.privateKey),
            path + "/ca.pem"
        )
    }

    private var scheme: String { tls == nil ? "http" : "https" }

    /// Binds one service. Addresses are shown by name in development, since the certificate carries it.
    private mutating func listen(
        _ address: ServerConfiguration.Address,
        _ service: String,
        broadcasts: HTTPHandler? = nil,
        _ handler: @escaping HTTPHandler
    ) throws -> String {
        let date = DateHeader(time)
        let (counters, log) = (counters, log.named(service))
        let routes = OwnRoutes(
            metrics: metrics,
            readiness: readiness,
            metricsAddresses: configuration.metricsAddresses,
            broadcasts: broadcasts,
            broadcastAddresses: configuration.broadcastAddresses
        )
        // Of the reserved paths those that a service has besides.
        let inner =
            service == "hub" ? "files" : service == "gateway" && configuration.isDevelopment ? "faults" : ""
        var limits = limits
        if service == "gateway", configuration.isAPNsStrict { limits.firstStreamCount = 1 }
        let server = HTTPServer(
            limits: limits,
            tls: tls,
            log: log,
            counters: counters,
            httpDate: { date.text },
            trustedProxies: configuration.trustedProxies,
            // As APNs does; the others would only make browsers ask their users.
            asksForCertificate: service == "gateway",
            handler: { request in
                let segments = request.target.segments
                let isOwn = segments.first == "-" && segments.dropFirst().first != inner
                return isOwn ? await routes.respond(to: request) : await handler(request)
            }
        )
        metrics.add(server, service: service)
        let port: Int
        do throws(SystemError) { port = try server.start(host: address.host, port: address.port) } catch {
            throw ConfigurationError("\(service) cannot listen on \(address.host):\(address.port): \(error)")
        }
        servers.append(server)
        let host = configuration.isDevelopment || address.host == "localhost" ? "localhost" : address.host
        return "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    }

    private func add(_ database: Database, _ name: String) {
        metrics.add(database, name: name)
        readiness.add(name, database)
    }

    /// After a failure: nothing may go on running.
    func abandon() async {
        for server in servers { await server.drain(within: .zero) }
        await host?.stopDispatchers()
        host?.close()
        backendStore?.close()
        mailbox?.close()
    }

    // MARK: Gateway

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
    private mutating func issueFiles(_ credentials: GatewayCredentials, _ origin: String) throws {
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

    // MARK: Hubs

    mutating func startHubs() async throws {
        guard configuration.services.contains(.hub) else { return }
        var catalog = try HubCatalog(keys: configuration.statePath + "/keys")
        try catalog.addRootPolicy(now: time.now)
        var names = configuration.hubs.map(\.name)
        if configuration.isDevelopment, names.isEmpty { names = [TidingsServer.developmentHub] }
        let host = HubHost(catalog, try hubFactory(), time: time)
        self.host = host
        // Before anyone can send: what an earlier run left is taken up once.
        try await host.start(configured: names)
        let edge = HubEdge(
            hubs: host,
            authorizer: Authorizer(hosts: knownHosts),
            log: log.named("hub"),
            counters: counters,
            time: time,
            files: try fileContainers(),
            limits: configuration.requestLimits,
            identifier: Self.newGUID
        )
        let address = try listen(configuration.hubAddress, "hub") { await edge.respond(to: $0) }
        endpoints.hub = address
        hubOrigin.value = address
        guard let endpoint = HTTPURL(address) else { return }
        func text(_ policy: AccessPolicy) -> String {
            HubConnectionString(endpoint: endpoint, keyName: policy.name, key: policy.primaryKey).text
        }
        for hub in host.hubs {
            for policy in hub.settings.policies {
                endpoints.connectionStrings[hub.name, default: [:]][policy.name] = text(policy)
            }
        }
        endpoints.namespaceConnectionString = host.namespacePolicies.first.map(text)
        try startARM(host, endpoint)
    }

    private static let tokenByteCountMin = 16

    private mutating func startARM(_ host: HubHost, _ endpoint: HTTPURL) throws {
        guard let address = configuration.armAddress else { return }
        let path = configuration.armTokenFile ?? configuration.statePath + "/keys/arm.token"
        if configuration.armTokenFile == nil, !Files.exists(path) {
            try Files.replace(path, with: Array(Hex.encode(Digests.random(32)).utf8))
        }
        guard let bytes = try Files.read(path) else {
            throw ConfigurationError("arm.tokenFile '\(path)' does not exist")
        }
        let token = Array(ASCII.trimmed(String(decoding: bytes, as: UTF8.self)).utf8)
        guard token.count >= Self.tokenByteCountMin else {
            throw ConfigurationError(
                "the token of arm.tokenFile has fewer than \(Self.tokenByteCountMin) characters"
            )
        }
        let edge = ARMEdge(
            hubs: host,
            token: token,
            log: log.named("arm"),
            time: time,
            connectionString: { HubConnectionString(endpoint: endpoint, keyName: $0.name, key: $1).text }
        )
        endpoints.arm = try listen(address, "arm") { await edge.respond(to: $0) }
        endpoints.armTokenFile = path
    }

    private var knownHosts: Set<String> {
        var hosts = configuration.hubHosts
        if configuration.hubAddress.isLoopback { hosts.formUnion(["localhost", "127.0.0.1", "[::1]"]) }
        return hosts
    }

    private func hubFactory() throws -> HubHost.Factory {
        let (configuration, time, retry, log, counters) = (
            configuration, time, retry, log.named("hub"), counters
        )
        let (metrics, readiness) = (metrics, readiness)
        let assembly = try senderAssembly()
        let gateway = configuration.isDevelopment ? gatewayCredentials : nil
        let origin = endpoints.gateway
        let folder = configuration.statePath + "/hubs/"
        let files = try jobFiles()
        let configured = configuration.hubs
        let isConfigured = { @Sendable (name: String) in
            configuration.isDevelopment && configured.isEmpty && name == TidingsServer.developmentHub
                || configured.contains { $0.name.lowercased() == name.lowercased() }
        }
        // A hub that is made again gets other files than the one before it, which may still be closing.
        let path = { @Sendable (hub: HubDescription) in
            let file = PercentEncoding.encode(hub.name.lowercased())
            return folder + (isConfigured(hub.name) ? file : "\(file)-\(hub.created.milliseconds)")
                + ".sqlite"
        }
        return HubHost.Factory(
            open: { description in
                let index = RoaringIndex(seed: UInt64.random(in: .min ... .max))
                let store = try await SQLiteHubStore(
                    path: path(description),
                    index: index,
                    registrationCountMax: configuration.registrationCountMax
                )
                let random = InjectedRandom { UInt64.random(in: .min ... .max) }
                let dispatcher = Dispatcher(
                    hub: description.name,
                    store: store,
                    index: index,
                    queue: store,
                    senders: SenderDirectory([:]),
                    time: time,
                    retry: retry,
                    random: random,
                    observer: DispatchLog(log: log, counters: counters)
                )
                let settings = HubSettings(description)
                let channelMode =
                    configuration.channelMode ?? (configuration.isDevelopment ? .original : .strict)
                let expiry = Holder(settings.registrationTTL)
                let jobs = HubJobs(
                    store: store,
                    files: files,
                    runner: JobRunner(
                        hub: description.name.lowercased(),
                        store: store,
                        files: files,
                        time: time,
                        random: random,
                        observer: DispatchLog(log: log, counters: counters),
                        channels: ChannelRules(channelMode, dispatcher.senders),
                        expiry: { expiry.value.map { time.now + $0 } ?? .never }
                    )
                )
                let hub = Hub(
                    name: description.name,
                    settings: settings,
                    listenMode: configuration.listenMode
                        ?? (configuration.isDevelopment ? .original : .strict),
                    channelMode: channelMode,
                    store: store,
                    queue: store,
                    dispatcher: dispatcher,
                    time: time,
                    random: random,
                    jobs: jobs,
                    settingsChanged: { expiry.value = $0.registrationTTL },
                    expressionLimits: configuration.expressionLimits
                )
                return (hub, store)
            },
            senders: { description, current in
                var senders: [Platform: any PlatformSender] = [:]
                if let gateway, let origin {
                    // They do not change: new ones would begin with new access tokens.
                    let own = current.all.filter { description.credentials[$0.key] == nil }
                    senders =
                        own.isEmpty
                        ? try assembly.senders(
                            SenderSettings(gateway: gateway, origin: origin)
                        )
                        : own
                } else if let settings = configured.first(where: {
                    $0.name.lowercased() == description.name.lowercased()
                }) {
                    senders = try assembly.senders(SenderSettings(settings), current: current)
                }
                let described = try assembly.senders(SenderSettings(description), current: current)
                return senders.merging(described) { _, new in new }
            },
            isTrusted: { address in
                guard let url = HTTPURL(address) else { return false }
                return url.origin == origin
                    || url.origin == configuration.gatewayURL.flatMap { HTTPURL($0)?.origin }
                    || configuration.credentialOrigins.contains(url.origin)
            },
            removeFiles: { description in
                for suffix in ["", "-wal", "-shm"] { Files.remove(path(description) + suffix) }
            },
            opened: { hub, store in
                metrics.add(store.database, name: "hub:\(hub.name)")
                readiness.add("hub:\(hub.name)", store.database)
                metrics.add(hub.dispatcher, hub: hub.name)
            },
            closed: { hub in
                metrics.remove("database=\"hub:\(hub.name)\"")
                metrics.remove("hub=\"\(hub.name)\"")
                readiness.remove("hub:\(hub.name)")
            }
        )
    }

    private static let filesKeyByteCount = 32

    private func fileContainers() throws -> FileContainers {
        let path = configuration.statePath + "/keys/files.key"
        let key: [UInt8]
        if let known = try Files.read(path), known.count == Self.filesKeyByteCount {
            key = known
        } else {
            key = Digests.random(Self.filesKeyByteCount)
            try Files.replace(path, with: key)
        }
        return FileContainers(
            folder: fileFolder,
            key: key,
            byteCountMax: configuration.fileByteCountMax,
            time: time,
            blocking: { try await EventLoopGroup.shared.next().runBlocking($0) }
        )
    }

    private var fileFolder: FileFolder { FileFolder(configuration.statePath + "/files/containers") }

    private func jobFiles() throws -> JobFileSystem {
        let (hosts, origin) = (configuration.hubHosts, hubOrigin)
        return JobFileSystem(
            containers: try fileContainers(),
            folder: fileFolder,
            isOwn: { $0.origin == origin.value || hosts.contains($0.host) },
            operatorFolder: configuration.jobFolder,
            scratch: configuration.statePath + "/files/jobs",
            client: HTTPClient(trust: OutboundTrust(), userAgent: "tidings-hub")
        )
    }

    private func senderAssembly() throws -> SenderAssembly {
        guard configuration.isDevelopment, let origin = endpoints.gateway, let file = endpoints.authorityFile,
            let pem = try Files.read(file)
        else { return SenderAssembly(time: time, gatewayAuthority: nil) }
        return SenderAssembly(time: time, gatewayAuthority: (origin, file, pem))
    }

    private static let newGUID: @Sendable () -> String = {
        let bytes = Digests.random(16)
        let text = Array(Hex.encode(bytes).utf8)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: text[$0], as: UTF8.self) }
            .joined(separator: "-")
    }

    // MARK: App back end

    mutating func startBackend() async throws {
        guard configuration.services.contains(.backend) else { return }
        let store = try BackendStore(path: configuration.statePath + "/backend.sqlite")
        backendStore = store
        add(store.database, "backend")
        let text: String
        if let configured = configuration.backendHub {
            text = configured
        } else if let own = endpoints.connectionStrings[configuration.backendHubName]?[AccessPolicy.fullName]
        {
            text = own
        } else {
            throw ConfigurationError(
                "backend.hub is missing: the connection string of the hub that the app back end uses (there is no hub '\(configuration.backendHubName)' here)"
            )
        }
        let connection = try HubConnectionString(parsing: text)
        var trust = OutboundTrust()
        if let file = configuration.backendAuthorityFile ?? endpoints.authorityFile {
            trust.authorityFiles[connection.endpoint.origin] = file
        }
        let client = HubClient(
            connection,
            hub: configuration.backendHubName,
            client: HTTPClient(trust: trust, userAgent: "tidings-backend"),
            time: time
        )
        var settings = BackendConfiguration(uploadFolder: configuration.statePath + "/files")
        settings.sample = configuration.sample
        settings.isCompatibilityMode = configuration.isCompatibilityMode
        settings.uploadByteCountMax = configuration.uploadByteCountMax
        if let file = configuration.samplePictureFile {
            guard let bytes = try Files.read(file) else {
                throw ConfigurationError("backend.samplePicture '\(file)' does not exist")
            }
            settings.samplePicture = (
                bytes, file.hasSuffix(".jpg") || file.hasSuffix(".jpeg") ? "image/jpeg" : "image/png"
            )
        }
        let verifier: any CredentialVerifier =
            configuration.verifier
            ?? (configuration.isDevelopment ? BasicVerifier.tutorial : passwordVerifier(store))
        let service = AppBackendService(
            configuration: settings,
            store: store,
            hub: client,
            verifier: verifier,
            tagPolicy: configuration.tagPolicy,
            sendPolicy: configuration.sendPolicy,
            time: time,
            log: log.named("backend"),
            counters: counters,
            blocking: { try await EventLoopGroup.shared.next().runBlocking($0) }
        )
        backend = service
        endpoints.backend = try listen(configuration.backendAddress, "backend") {
            await service.respond(to: $0)
        }
    }

    /// Passwords of `tidings users`, with scrypt on the worker pool.
    private func passwordVerifier(_ store: BackendStore) -> BasicVerifier {
        let passwords = PasswordChecker(
            time: time,
            counters: counters,
            passwordHash: { try await store.passwordHash($0) },
            blocking: { try await EventLoopGroup.shared.next().runBlocking($0) }
        )
        return BasicVerifier { await passwords.check($0, $1, from: $2) }
    }
}

/// A value that is known, or changes, only after what reads it was made.
private final class Holder<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    init(_ value: Value) { state = Mutex(value) }
    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

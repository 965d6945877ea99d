import EventLoops
import HTTPMessages
import HubClient
import HubCore
import HubServer
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import PushTelemetry
import TidingsModels

/// The hubs, their surfaces and their files.
extension ServerAssembly {
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

    static let tokenByteCountMin = 16

    mutating func startARM(_ host: HubHost, _ endpoint: HTTPURL) throws {
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

    var knownHosts: Set<String> {
        var hosts = configuration.hubHosts
        if configuration.hubAddress.isLoopback { hosts.formUnion(["localhost", "127.0.0.1", "[::1]"]) }
        return hosts
    }

    static let filesKeyByteCount = 32

    func fileContainers() throws -> FileContainers {
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

    var fileFolder: FileFolder { FileFolder(configuration.statePath + "/files/containers") }

    func jobFiles() throws -> JobFileSystem {
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

    func senderAssembly() throws -> SenderAssembly {
        guard configuration.isDevelopment, let origin = endpoints.gateway, let file = endpoints.authorityFile,
            let pem = try Files.read(file)
        else { return SenderAssembly(time: time, gatewayAuthority: nil) }
        return SenderAssembly(time: time, gatewayAuthority: (origin, file, pem))
    }

    static let newGUID: @Sendable () -> String = {
        let bytes = Digests.random(16)
        let text = Array(Hex.encode(bytes).utf8)
        return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: text[$0], as: UTF8.self) }
            .joined(separator: "-")
    }
}

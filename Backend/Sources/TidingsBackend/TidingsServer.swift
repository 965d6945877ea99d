package import AppBackend
import EventLoops
package import HTTPServing
package import HubCore
import HubStore
import ProcessLifecycle
import PushGateway
package import PushTelemetry
package import TidingsModels

/// The services of one process, running. Its parts are made, wired and stopped here and nowhere else.
public final class TidingsServer: Sendable {
    /// How to reach what was started; nil for a service that does not run here.
    package struct Endpoints: Sendable {
        package var backend: String?
        package var hub: String?
        package var gateway: String?
        package var authorityFile: String?
        /// By hub name: the policies' connection strings, by policy name.
        package var connectionStrings: [String: [String: String]] = [:]
        /// Of the policy that holds at every hub.
        package var namespaceConnectionString: String?
        /// The Resource Manager's surface, and the file with its clients' token.
        package var arm: String?
        package var armTokenFile: String?
        /// The files that the gateway issued, for provider libraries.
        package var serviceAccountFile: String?
        package var apnsKeyFile: String?
        package var apnsKeyID: String?
        package var apnsTeamID: String?
        package var apnsCertificateFile: String?
        /// The VAPID key of the development hub, base64url: what a page or device subscribes with.
        package var vapidPublicKey: String?
    }

    /// The hub of `--dev`.
    package static let developmentHub = "tidings"
    /// A send's details are kept so long after it ended.
    private static let retention = Duration.seconds(30 * 86400)
    private static let sweepInterval = Duration.seconds(60)

    package let endpoints: Endpoints
    /// Who may sign in; nil without an app back end.
    package let backendStore: BackendStore?
    package let host: HubHost?
    private let servers: [HTTPServer]
    /// The gateway's come first in ``servers``.
    private let gatewayServerCount: Int
    private let mailbox: SQLiteMailbox?
    private let folder: StateFolder
    private let configuration: ServerConfiguration
    private let time: any TimeSource
    private let sweeper: Task<Void, Never>
    private let readiness: Readiness
    private let lag: LoopLag
    package let metrics: Metrics
    package var counters: Counters { metrics.counters }

    package static func start(
        _ configuration: ServerConfiguration,
        time: any TimeSource,
        log sink: LogSink = .standardError,
        retry: RetryPolicy = RetryPolicy(),
        limits: ServerLimits = ServerLimits()
    ) async throws -> TidingsServer {
        try configuration.check()
        var assembly = try ServerAssembly(
            configuration,
            time: time,
            log: Log("tidings", to: sink),
            retry: retry,
            limits: limits
        )
        do {
            try await assembly.startGateway()
            try await assembly.startHubs()
            try await assembly.startBackend()
        } catch {
            await assembly.abandon()
            throw error
        }
        return TidingsServer(assembly)
    }

    private init(_ assembly: ServerAssembly) {
        endpoints = assembly.endpoints
        backendStore = assembly.backendStore
        host = assembly.host
        servers = assembly.servers
        gatewayServerCount = assembly.gateway == nil ? 0 : 1
        mailbox = assembly.mailbox
        folder = assembly.folder
        configuration = assembly.configuration
        time = assembly.time
        metrics = assembly.metrics
        readiness = assembly.readiness
        lag = assembly.lag
        let (gateway, backend, host, time, log) = (
            assembly.gateway, assembly.backend, assembly.host, assembly.time, assembly.log
        )
        // Cancelled by `stop`.
        sweeper = Task {
            while !Task.isCancelled {
                guard (try? await time.sleep(for: Self.sweepInterval)) != nil else { return }
                do {
                    try await gateway?.sweep()
                    try await backend?.sweep()
                    for store in host?.stores ?? [] {
                        _ = try await store.removeExpired(now: time.now)
                        let before = time.now + (.zero - Self.retention)
                        _ = try await store.removeEnded(before: before)
                        try await store.removeEndedJobs(before: before)
                    }
                } catch { log.error("sweep_failed", ["reason": .string(String(describing: error))]) }
            }
        }
    }

    /// Starts the services that a configuration names, for a program of a team's own. Free ports are told by ``addresses``.
    public static func start(_ configuration: ServerConfiguration) async throws -> TidingsServer {
        try await start(
            configuration,
            time: SystemTimeSource(),
            log: .standardError(from: configuration.logLevel)
        )
    }

    /// The addresses of the app back end, the hub and the gateway; nil for one that does not run here.
    public var addresses: (backend: String?, hub: String?, gateway: String?) {
        (endpoints.backend, endpoints.hub, endpoints.gateway)
    }

    /// Finishes what is under way and stops. What is accepted and not sent stays on disk.
    public func stop() async {
        readiness.drain()
        sweeper.cancel()
        // The back end first, then the hub, then its dispatchers, then the gateway: what each accepted can still pass
        // through the next, and no dispatcher takes a stopping gateway for one in trouble.
        for server in servers.dropFirst(gatewayServerCount).reversed() { await server.drain() }
        await host?.stopDispatchers()
        for server in servers.prefix(gatewayServerCount) { await server.drain() }
        host?.close()
        backendStore?.close()
        mailbox?.close()
        lag.stop()
        folder.release()
    }

    /// Reads the certificate, the key and the hubs' credential files again, under the names that the configuration gives them.
    ///
    /// Open connections keep their certificate, and pushes under way their credentials. With an error nothing has changed.
    package func reload() async throws {
        let tls = try ServerAssembly.configuredTLS(configuration)
        try await host?.reload()
        if let tls { for server in servers { server.replace(tls: tls) } }
    }

    /// Open connections of all listeners.
    package var connectionCount: Int { servers.reduce(0) { $0 + $1.connectionCount } }
}

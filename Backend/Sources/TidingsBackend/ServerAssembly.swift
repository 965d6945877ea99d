import AppBackend
import EventLoops
import HTTPMessages
import HTTPServing
import HubCore
import ProcessLifecycle
import PushGateway
import PushTelemetry
import SQLiteStorage
import Synchronization
import TLSTransport
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
    let hubOrigin = Holder("")
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

    var scheme: String { tls == nil ? "http" : "https" }

    /// Binds one service. Addresses are shown by name in development, since the certificate carries it.
    mutating func listen(
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
            farewell: service == "gateway" ? Array(#"{"reason":"Shutdown"}"#.utf8) : [],
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

    func add(_ database: Database, _ name: String) {
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
}

/// A value that is known, or changes, only after what reads it was made.
final class Holder<Value: Sendable>: Sendable {
    let state: Mutex<Value>
    init(_ value: Value) { state = Mutex(value) }
    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}

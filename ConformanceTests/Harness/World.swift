import AppBackend
public import BackendClient
import DeviceDaemon
package import HTTPMessages
package import HTTPServing
public import HubClient
package import HubCore
import JSONBytes
package import OutboundHTTP
import ProcessLifecycle
import PushTelemetry
import Synchronization
package import TidingsBackend
public import TidingsModels

/// App back end, hub, gateway and devices in one process: real sockets, real protocols, TLS, free ports, a scratch folder.
///
/// A team boots one in its own tests, replays a scenario and looks at what the devices show.
public final class World: Sendable {
    /// What differs from `tidings serve --dev`.
    public struct Options: Sendable {
        /// What an empty `POST /api/notifications` sends.
        package var sample = "secure"
        package var isCompatibilityMode = true
        package var uploadByteCountMax = 10 << 20
        /// The delay before a platform is tried again, so that tests of failures are quick.
        package var retry: RetryPolicy = {
            var policy = RetryPolicy()
            policy.delayMin = .milliseconds(10)
            return policy
        }()
        package var limits = ServerLimits()
        /// Calendar time for everything in the World.
        public var clock = WorldClock()
        /// Has the last word on the configuration.
        package var configure: @Sendable (inout ServerConfiguration) -> Void = { _ in }
        /// Keeps the state, also after the World ends.
        package var statePath: String?

        /// The defaults.
        public init() {}
    }

    /// Calendar time for everything in the World.
    public let clock: WorldClock
    private let scratch: String
    private let keepsScratch: Bool
    private let options: Options
    private let ports: (backend: ReservedPort, hub: ReservedPort, gateway: ReservedPort)
    private let sink = LogSink.inMemory()
    private let running: Mutex<TidingsServer?> = Mutex(nil)
    private let devices: Mutex<[WorldDevice]> = Mutex([])

    private init(_ options: Options) throws {
        self.options = options
        clock = options.clock
        ports = (try ReservedPort(), try ReservedPort(), try ReservedPort())
        scratch = try options.statePath ?? Files.makeScratchFolder("tidings-world")
        keepsScratch = options.statePath != nil
    }

    /// Boots a World, runs `body`, and stops everything.
    public static func run<Value: Sendable>(
        _ options: Options = Options(),
        _ body: (World) async throws -> Value
    ) async throws -> Value {
        let world = try await start(options)
        do {
            let value = try await body(world)
            await world.stop()
            return value
        } catch {
            await world.stop()
            throw error
        }
    }

    /// Boots a World that runs until ``stop()``.
    public static func start(_ options: Options = Options()) async throws -> World {
        let world = try World(options)
        do { try await world.startServer() } catch {
            await world.stop()
            throw error
        }
        return world
    }

    /// Stops devices and server and removes the scratch folder.
    public func stop() async {
        for device in devices.withLock({ $0 }) { await device.stop() }
        await stopServer()
        if !keepsScratch { Files.removeTree(scratch) }
    }

    // MARK: The server

    /// The state folder of the services.
    package var serverState: String { scratch + "/server" }
    /// Starts the services again, on the ports they had.
    package func startServer() async throws {
        var configuration = ServerConfiguration(statePath: serverState)
        try SharedCredentials.install(in: configuration.statePath)
        configuration.isDevelopment = true
        configuration.backendAddress.port = ports.backend.number
        configuration.hubAddress.port = ports.hub.number
        configuration.gatewayAddress.port = ports.gateway.number
        configuration.sample = .init(rawValue: options.sample) ?? .secure
        configuration.isCompatibilityMode = options.isCompatibilityMode
        configuration.uploadByteCountMax = options.uploadByteCountMax
        options.configure(&configuration)
        let server = try await TidingsServer.start(
            configuration,
            time: clock,
            log: sink,
            retry: options.retry,
            limits: options.limits
        )
        running.withLock { $0 = server }
    }

    package func stopServer() async {
        let server = running.withLock { running in
            defer { running = nil }
            return running
        }
        await server?.stop()
    }

    package var server: TidingsServer {
        get throws {
            guard let server = running.withLock({ $0 }) else { throw WorldFailure("the server is stopped") }
            return server
        }
    }

    /// The app back end's address.
    public var backendURL: String { get throws { try server.endpoints.backend ?? "" } }
    /// The hub's address.
    public var hubURL: String { get throws { try server.endpoints.hub ?? "" } }
    /// The gateway's address.
    public var gatewayURL: String { get throws { try server.endpoints.gateway ?? "" } }
    /// The certificate authority that all three use.
    public var authorityFile: String { get throws { try server.endpoints.authorityFile ?? "" } }
    /// The hub's name.
    public var hubName: String { TidingsServer.developmentHub }

    /// A connection string of the hub.
    /// - Parameter rights: `full`, else Listen.
    public func connectionString(full: Bool) throws -> String {
        let name = full ? AccessPolicy.fullName : AccessPolicy.listenName
        guard let text = try server.endpoints.connectionStrings[hubName]?[name] else {
            throw WorldFailure("the hub has no policy \(name)")
        }
        return text
    }

    /// Everything that the services and devices logged.
    package var logBytes: [UInt8] { sink.contents }

    // MARK: Clients

    package func httpClient() throws -> HTTPClient {
        var trust = OutboundTrust()
        for url in [try backendURL, try hubURL, try gatewayURL] {
            trust.authorityFiles[url] = try authorityFile
        }
        return HTTPClient(trust: trust, userAgent: "tidings-world")
    }

    /// A hub client, as a back end or operator has one.
    public func hub(full: Bool = true) throws -> HubClient {
        HubClient(
            try HubConnectionString(parsing: try connectionString(full: full)),
            hub: hubName,
            client: try httpClient(),
            time: clock
        )
    }

    /// An app of a user.
    public func app(_ user: String, password: String? = nil) throws -> BackendClient {
        guard let endpoint = HTTPURL(try backendURL) else {
            throw WorldFailure("the back end has no address")
        }
        return BackendClient(
            endpoint: endpoint,
            credential: .basic(user: user, password: password ?? user),
            client: try httpClient()
        )
    }

    /// One request, its answer whatever the status.
    package func request(
        _ method: String,
        _ url: String,
        fields: HTTPFields = [:],
        body: [UInt8]? = nil
    ) async throws -> HTTPAnswer {
        guard let url = HTTPURL(url) else { throw WorldFailure("'\(url)' is not a URL") }
        return try await httpClient().send(OutboundRequest(method, url, fields: fields, body: body))
    }

    /// What became of a send, once every target has its outcome.
    public func outcome(_ id: NotificationID) async throws -> NotificationDetails {
        let details = try await hub().finalDetails(id, every: .milliseconds(5))
        guard details.state.isFinal else {
            throw WorldFailure("the send \(id) is still \(details.state.rawValue)")
        }
        return details
    }

    // MARK: Devices

    /// How a device differs from the usual one.
    public struct DeviceOptions: Sendable {
        /// Registers by installation id.
        public var registersByInstallation = false
        /// Shows rich pushes as local notifications.
        public var isBackground = false
        /// Before a local notification.
        public var localNotificationDelay = Duration.zero
        /// Holds a connection string with Send.
        public var maySend = false
        /// Web Push: the only server that may send, its key in base64url.
        public var vapidKey: String?
        /// Another app back end than the World's.
        package var backend: HTTPURL?

        /// The usual device.
        public init() {}
    }

    /// A device that is connected and has its handle.
    public func device(
        _ name: String,
        _ platform: Platform = .apns,
        _ options: DeviceOptions = DeviceOptions()
    ) async throws -> WorldDevice {
        guard let gateway = HTTPURL(try gatewayURL) else { throw WorldFailure("the gateway has no address") }
        var configuration = DaemonConfiguration(
            platform: platform,
            statePath: scratch + "/devices/" + name,
            gateway: gateway,
            backend: try options.backend ?? HTTPURL(try backendURL),
            hub: try HubConnectionString(parsing: try connectionString(full: false)),
            hubName: hubName
        )
        configuration.authorityFile = try authorityFile
        configuration.style = options.registersByInstallation ? .installation : .handle
        configuration.isBackground = options.isBackground
        configuration.vapidKey = options.vapidKey
        configuration.localNotificationDelay = options.localNotificationDelay
        if options.maySend {
            configuration.sendHub = try HubConnectionString(parsing: try connectionString(full: true))
        }
        let device = WorldDevice(name: name, configuration: configuration, clock: clock)
        try await start(device)
        devices.withLock { $0.append(device) }
        _ = try await device.nextEvent("handle")
        return device
    }

    /// Starts a device again after ``WorldDevice/stop()``.
    public func start(_ device: WorldDevice) async throws {
        try await device.start(DeviceLog(log: Log("device", to: sink)))
    }

    /// Starts a device without waiting for the gateway.
    package func startUnconnected(_ device: WorldDevice) async throws {
        try await device.start(DeviceLog(log: Log("device", to: sink)), waits: false)
    }
}

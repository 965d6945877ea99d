public import AppBackend
import HTTPMessages
package import HubCore
package import HubServer
package import JSONBytes
import ProcessLifecycle
package import PushTelemetry
package import TidingsModels

/// A configuration that cannot be used, with the key that is wrong.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    /// The key, what was seen and what is allowed.
    public let description: String

    package init(_ description: String) { self.description = description }
}

/// Everything that `tidings serve` can be told: one JSON file, each scalar key of which is also a flag and an
/// environment variable (``ConfigurationKeys``).
public struct ServerConfiguration: Sendable {
    /// The services of a process; in production each usually runs alone.
    public enum Service: String, CaseIterable, Sendable {
        /// One of the three.
        case backend, hub, gateway
    }

    package struct Address: Sendable, Equatable {
        package var host: String
        package var port: Int

        package init(host: String, port: Int) {
            self.host = host
            self.port = port
        }

        /// `host:port`; an IPv6 address in brackets.
        package init(_ text: String, key: String) throws(ConfigurationError) {
            let colon = text.lastIndex(of: ":")
            guard let colon, let port = Int(text[text.index(after: colon)...]), (0...65535).contains(port),
                colon > text.startIndex
            else {
                throw ConfigurationError("\(key) '\(text)' is not of the form host:port")
            }
            var host = String(text[..<colon])
            if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
            self.init(host: host, port: port)
        }

        var isLoopback: Bool { HTTPURL.isLoopback(host) }
    }

    /// Everything in one process by default.
    public var services = Set(Service.allCases)
    /// The state folder.
    public var statePath: String
    /// Makes all that is needed on this machine: a certificate authority, a hub with its keys, credentials towards the own
    /// gateway, the tutorials' password rule. Refused off loopback.
    public var isDevelopment = false
    /// Who a request to the app back end comes from. Nil: the user store, or the tutorials' rule in development.
    public var verifier: (any CredentialVerifier)?
    /// Which tags a user may put on a device.
    public var tagPolicy: any TagPolicy = OpenPolicy()
    /// Who may notify whom.
    public var sendPolicy: any SendPolicy = OpenPolicy()
    /// Log lines below this level are not written.
    package var logLevel = Log.Level.info
    package var allowsPlainHTTP = false
    package var certificateFile: String?
    package var privateKeyFile: String?
    package var backendAddress = Address(host: "127.0.0.1", port: 8080)
    package var hubAddress = Address(host: "127.0.0.1", port: 8081)
    package var gatewayAddress = Address(host: "127.0.0.1", port: 8082)
    /// Names under which clients reach the hub, for the audience of their tokens.
    package var hubHosts: Set<String> = []
    /// Addresses of TLS terminators, whose `X-Forwarded-For` is believed.
    package var trustedProxies: Set<String> = []
    /// Who may read `/-/metrics` besides this machine.
    package var metricsAddresses: Set<String> = []
    /// Who may change `/-/broadcasts` besides this machine.
    package var broadcastAddresses: Set<String> = []
    package var hubs: [HubSettings] = []
    /// Where the Resource Manager's surface listens; nil for nowhere.
    package var armAddress: Address?
    /// Holds the token that its clients show.
    package var armTokenFile: String?
    package var requestLimits = RequestLimits()
    package var expressionLimits = TagExpressionLimits()
    /// The most registrations of a hub; nil for as many as can be numbered.
    package var registrationCountMax: Int?
    /// What `file:` addresses of jobs may reach; nil for nothing.
    package var jobFolder: String?
    /// The largest file of a container.
    package var fileByteCountMax = 1 << 30
    /// Origins besides https ones that a hub's credentials may name.
    package var credentialOrigins: Set<String> = []
    /// Nil: as at the original in development, else strict.
    package var listenMode: ListenMode?
    /// Nil: as at the original in development, else strict.
    package var channelMode: ChannelMode?
    /// The gateway holds against a connection what Apple does: one stream at first, one key, rarely another token.
    package var isAPNsStrict = false
    /// How providers and devices reach the gateway.
    package var gatewayURL: String?
    package var backendHub: String?
    package var backendHubName = "tidings"
    /// A certificate authority for the back end's hub.
    package var backendAuthorityFile: String?
    package var sample = BackendConfiguration.Sample.secure
    package var isCompatibilityMode = true
    package var uploadByteCountMax = 10 << 20
    package var samplePictureFile: String?

    /// One hub and its credentials.
    package struct HubSettings: Sendable {
        package var name: String
        /// By platform, as `hub.hubs` holds them: ``HubSettings/platforms``.
        package var credentials: [Platform: JSONObject] = [:]

        /// The platforms that a file can hold credentials of; the member is the raw value.
        package static let platforms: [Platform] = [
            .apns, .fcmV1, .wns, .browser, .mpns, .adm, .baidu, .xiaomi,
        ]

        package init(name: String) { self.name = name }
    }

    /// The defaults with a state folder.
    public init(statePath: String) { self.statePath = statePath }

    /// Takes free ports instead of the usual ones.
    public mutating func useFreePorts() {
        backendAddress.port = 0
        hubAddress.port = 0
        gatewayAddress.port = 0
    }

    /// Refuses combinations that would be unsafe.
    package func check() throws(ConfigurationError) {
        var addresses = [(Service.backend, backendAddress), (.hub, hubAddress), (.gateway, gatewayAddress)]
            .filter { services.contains($0.0) }.map { ($0.0.rawValue, $0.1) }
        if let armAddress, services.contains(.hub) { addresses.append(("arm", armAddress)) }
        for (service, address) in addresses where !address.isLoopback {
            if isDevelopment {
                throw ConfigurationError(
                    "dev is refused on \(address.host): its keys, passwords and certificates are for this machine alone. Use a loopback address."
                )
            }
            if certificateFile == nil, !allowsPlainHTTP {
                throw ConfigurationError(
                    "\(service).address \(address.host) is not loopback and there is no tls.certificate. Set one, or allowPlainHTTP behind a TLS terminator."
                )
            }
        }
        if (certificateFile == nil) != (privateKeyFile == nil) {
            throw ConfigurationError("tls.certificate and tls.key go together")
        }
        if services.contains(.backend), !services.contains(.hub), backendHub == nil {
            throw ConfigurationError(
                "backend.hub is missing: the connection string of the hub that the app back end uses"
            )
        }
    }
}

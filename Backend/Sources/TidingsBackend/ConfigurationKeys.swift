import AppBackend
import EventLoops
import HTTPMessages
import HubCore
import HubServer
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsModels

/// The keys of the configuration, written once: the file, the flags and the environment all come from this table.
package enum ConfigurationKeys {
    package struct Key: Sendable {
        /// As in the file: `backend.address`.
        package let path: String
        package let help: String
        /// A truth value: as a flag it needs no value.
        package var isSwitch = false
        let set: @Sendable (inout ServerConfiguration, String) throws(ConfigurationError) -> Void

        /// `--backend-address`.
        package var flag: String { "--" + Self.words(path).joined(separator: "-") }
        /// `TIDINGS_BACKEND_ADDRESS`.
        package var variable: String { "TIDINGS_" + Self.words(path).joined(separator: "_").uppercased() }

        /// A run of capitals is one word: `gateway.publicURL` has three.
        private static func words(_ path: String) -> [String] {
            var words: [String] = []
            var word = ""
            var wasUppercase = false
            for character in path {
                let startsWord = character.isUppercase && !wasUppercase
                if character == "." || startsWord {
                    if !word.isEmpty { words.append(word) }
                    word = ""
                }
                if character != "." { word.append(character.lowercased()) }
                wasUppercase = character.isUppercase
            }
            return words + [word]
        }
    }

    package static let all: [Key] = [
        Key(path: "services", help: "what runs here: backend,hub,gateway") {
            configuration,
            text throws(ConfigurationError) in
            var services = Set<ServerConfiguration.Service>()
            for name in text.split(separator: ",") {
                guard let service = ServerConfiguration.Service(rawValue: String(name)) else {
                    throw ConfigurationError("services '\(name)' is not one of backend, hub, gateway")
                }
                services.insert(service)
            }
            guard !services.isEmpty else { throw ConfigurationError("services is empty") }
            configuration.services = services
        },
        Key(path: "state", help: "the folder that holds everything") { $0.statePath = $1 },
        Key(path: "dev", help: "set up everything for this machine", isSwitch: true) {
            configuration,
            text throws(ConfigurationError) in
            configuration.isDevelopment = try truth(text, "dev")
        },
        Key(path: "log", help: "from which level on: debug, info, warning, error") {
            configuration,
            text throws(ConfigurationError) in
            configuration.logLevel = try choice(text, "log")
        },
        Key(path: "allowPlainHTTP", help: "plain HTTP off loopback (behind a TLS terminator)", isSwitch: true)
        {
            configuration,
            text throws(ConfigurationError) in
            configuration.allowsPlainHTTP = try truth(text, "allowPlainHTTP")
        },
        Key(path: "tls.certificate", help: "PEM chain, leaf first") { $0.certificateFile = $1 },
        Key(path: "tls.key", help: "PEM private key") { $0.privateKeyFile = $1 },
        Key(
            path: "trustedProxies",
            help: "addresses of TLS terminators whose X-Forwarded-For is believed, comma-separated"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.trustedProxies = try addresses(text, "trustedProxies")
        },
        Key(
            path: "metrics.addresses",
            help: "who may read /-/metrics besides this machine, comma-separated addresses"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.metricsAddresses = try addresses(text, "metrics.addresses")
        },
        Key(
            path: "broadcasts.addresses",
            help: "who may change /-/broadcasts besides this machine, comma-separated addresses"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.broadcastAddresses = try addresses(text, "broadcasts.addresses")
        },
        Key(path: "backend.address", help: "host:port of the app back end") {
            configuration,
            text throws(ConfigurationError) in
            configuration.backendAddress = try .init(text, key: "backend.address")
        },
        Key(path: "backend.hub", help: "connection string of the hub that it uses") { $0.backendHub = $1 },
        Key(path: "backend.hubName", help: "name of that hub") { $0.backendHubName = $1 },
        Key(path: "backend.authorityFile", help: "certificate authority of that hub") {
            $0.backendAuthorityFile = $1
        },
        Key(path: "backend.sample", help: "what an empty POST /api/notifications sends: secure or rich") {
            configuration,
            text throws(ConfigurationError) in
            guard let sample = BackendConfiguration.Sample(rawValue: text) else {
                throw ConfigurationError("backend.sample '\(text)' is neither secure nor rich")
            }
            configuration.sample = sample
        },
        Key(path: "backend.samplePicture", help: "the picture of the rich sample") {
            $0.samplePictureFile = $1
        },
        Key(
            path: "backend.compatibility",
            help: "403 for wrong credentials, as in the tutorials (true), or 401 (false)"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.isCompatibilityMode = try truth(text, "backend.compatibility")
        },
        Key(path: "backend.uploadByteCountMax", help: "largest upload in bytes") {
            configuration,
            text throws(ConfigurationError) in
            guard let count = Int(text), count > 0 else {
                throw ConfigurationError("backend.uploadByteCountMax '\(text)' is not a number from 1")
            }
            configuration.uploadByteCountMax = count
        },
        Key(path: "hub.address", help: "host:port of the hub") {
            configuration,
            text throws(ConfigurationError) in
            configuration.hubAddress = try .init(text, key: "hub.address")
        },
        Key(path: "hub.hosts", help: "names under which clients reach the hub, comma-separated") {
            $0.hubHosts = Set($1.split(separator: ",").map { $0.lowercased() })
        },
        Key(path: "arm.address", help: "host:port of the Azure Resource Manager surface; none by default") {
            configuration,
            text throws(ConfigurationError) in
            configuration.armAddress = try .init(text, key: "arm.address")
        },
        Key(path: "arm.tokenFile", help: "file with the token of its clients (default keys/arm.token)") {
            $0.armTokenFile = $1
        },
        Key(
            path: "hub.requestsPerSecond",
            help: "requests that each hub takes in a second (429 beyond); none by default"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.requestLimits.requestsPerSecond = try count(text, "hub.requestsPerSecond")
        },
        Key(
            path: "hub.sendsPerSecond",
            help: "sends that each hub takes in a second (429 beyond); none by default"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.requestLimits.sendsPerSecond = try count(text, "hub.sendsPerSecond")
        },
        Key(
            path: "hub.registrationCountMax",
            help: "registrations that each hub holds (429 beyond); none by default"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.registrationCountMax = try count(text, "hub.registrationCountMax")
        },
        Key(
            path: "hub.tagsPerExpression",
            help: "tags of an expression with && or ! (the original: 6; default 1000)"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.expressionLimits.tagCountMax = try count(text, "hub.tagsPerExpression", upTo: 1000)
        },
        Key(
            path: "hub.tagsPerAlternative",
            help: "tags of an expression with || alone (the original: 20; default 1000)"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.expressionLimits.tagCountMaxOnlyOr = try count(
                text,
                "hub.tagsPerAlternative",
                upTo: 1000
            )
        },
        Key(path: "hub.jobFolder", help: "the folder that file: addresses of imports and exports may reach") {
            configuration,
            text throws(ConfigurationError) in
            guard text.hasPrefix("/") else {
                throw ConfigurationError("hub.jobFolder '\(text)' does not begin with /")
            }
            configuration.jobFolder = text
        },
        Key(path: "hub.fileByteCountMax", help: "largest file of a container below /-/files in bytes") {
            configuration,
            text throws(ConfigurationError) in
            guard let count = Int(text), count > 0 else {
                throw ConfigurationError("hub.fileByteCountMax '\(text)' is not a number from 1")
            }
            configuration.fileByteCountMax = count
        },
        Key(
            path: "hub.credentialOrigins",
            help:
                "origins without https that a hub's credentials may name, comma-separated (a gateway of your own)"
        ) {
            $0.credentialOrigins = Set($1.split(separator: ",").map(String.init))
        },
        Key(
            path: "hub.listen",
            help: "what a Listen key may change: strict (not what a Manage key made) or original (all)"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.listenMode = try choice(text, "hub.listen") as ListenMode
        },
        Key(
            path: "hub.channels",
            help:
                "channels that a registration may name: strict (the platform's own and those of configured gateways) or original (all)"
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.channelMode = try choice(text, "hub.channels") as ChannelMode
        },
        Key(path: "gateway.address", help: "host:port of the gateway") {
            configuration,
            text throws(ConfigurationError) in
            configuration.gatewayAddress = try .init(text, key: "gateway.address")
        },
        Key(
            path: "gateway.apnsStrict",
            help: "hold providers to Apple's rules for connections and for renewing tokens",
            isSwitch: true
        ) {
            configuration,
            text throws(ConfigurationError) in
            configuration.isAPNsStrict = try truth(text, "gateway.apnsStrict")
        },
        Key(path: "gateway.publicURL", help: "how providers and devices reach the gateway") {
            $0.gatewayURL = $1
        },
    ]

    private static func count(
        _ text: String,
        _ key: String,
        upTo countMax: Int = 1_000_000_000
    ) throws(ConfigurationError) -> Int {
        guard let count = Int(text), (1...countMax).contains(count) else {
            throw ConfigurationError("\(key) '\(text)' is not a number from 1 to \(countMax)")
        }
        return count
    }

    private static func choice<Value: RawRepresentable<String> & CaseIterable>(
        _ text: String,
        _ key: String
    ) throws(ConfigurationError) -> Value {
        guard let value = Value(rawValue: text) else {
            let allowed = Value.allCases.map(\.rawValue).joined(separator: ", ")
            throw ConfigurationError("\(key) '\(text)' is not one of \(allowed)")
        }
        return value
    }

    private static func addresses(_ text: String, _ key: String) throws(ConfigurationError) -> Set<String> {
        let addresses = Set(text.split(separator: ",").map { ASCII.trimmed($0) })
        for address in addresses where SocketAddress(host: address, port: 0) == nil {
            throw ConfigurationError("\(key) '\(address)' is not a numeric address")
        }
        return addresses
    }

    private static func truth(_ text: String, _ key: String) throws(ConfigurationError) -> Bool {
        switch text.lowercased() {
        case "true", "1", "yes": true
        case "false", "0", "no": false
        default: throw ConfigurationError("\(key) '\(text)' is neither true nor false")
        }
    }

    /// Applies a configuration file. An unknown key is an error that names it.
    package static func apply(
        file bytes: [UInt8],
        to configuration: inout ServerConfiguration
    ) throws(ConfigurationError) {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: bytes) } catch {
            throw ConfigurationError("The configuration file is not JSON: \(error)")
        }
        guard case .object(let object) = json else {
            throw ConfigurationError("The configuration file must hold a JSON object")
        }
        try apply(object, prefix: "", to: &configuration)
    }

    private static func apply(
        _ object: JSONObject,
        prefix: String,
        to configuration: inout ServerConfiguration
    ) throws(ConfigurationError) {
        for member in object.members {
            let path = prefix + member.name
            if path == "hub.hubs" {
                configuration.hubs = try hubs(member.value)
                continue
            }
            if let key = all.first(where: { $0.path == path }) {
                try key.set(&configuration, try scalar(member.value, path))
            } else if case .object(let inner) = member.value,
                all.contains(where: { $0.path.hasPrefix(path + ".") })
            {
                try apply(inner, prefix: path + ".", to: &configuration)
            } else {
                let known = (all.map(\.path) + ["hub.hubs"]).joined(separator: ", ")
                throw ConfigurationError("The configuration key '\(path)' is not known. Known are \(known)")
            }
        }
    }

    private static func scalar(_ value: JSONValue, _ path: String) throws(ConfigurationError) -> String {
        switch value {
        case .string(let text), .number(let text): return text
        case .bool(let truth): return truth ? "true" : "false"
        case .array(let values):
            var texts: [String] = []
            for value in values { texts.append(try scalar(value, path)) }
            return texts.joined(separator: ",")
        case .null, .object:
            throw ConfigurationError(
                "The configuration key '\(path)' must be a text, a number, a truth value or a list of texts"
            )
        }
    }

    private static func hubs(
        _ value: JSONValue
    ) throws(ConfigurationError) -> [ServerConfiguration.HubSettings] {
        guard case .array(let values) = value else {
            throw ConfigurationError("hub.hubs must be a list of objects")
        }
        var hubs: [ServerConfiguration.HubSettings] = []
        for value in values {
            guard case .object(let object) = value, let name = object["name"]?.stringValue, !name.isEmpty
            else {
                throw ConfigurationError("each of hub.hubs must be an object with a 'name'")
            }
            var hub = ServerConfiguration.HubSettings(name: name)
            for member in object.members where member.name != "name" {
                guard case .object(let credentials) = member.value else {
                    throw ConfigurationError("hub.hubs '\(name)': '\(member.name)' must be an object")
                }
                let platforms = ServerConfiguration.HubSettings.platforms
                guard let platform = platforms.first(where: { $0.rawValue == member.name }) else {
                    let known = platforms.map(\.rawValue).joined(separator: ", ")
                    throw ConfigurationError(
                        "hub.hubs '\(name)': the key '\(member.name)' is not known. Known are \(known)"
                    )
                }
                hub.credentials[platform] = credentials
            }
            hubs.append(hub)
        }
        return hubs
    }

    /// Applies the environment, then the flags, which win. Returns what is neither.
    package static func apply(
        arguments: [String],
        to configuration: inout ServerConfiguration
    ) throws(ConfigurationError) -> [String] {
        for key in all {
            if let text = environment(key.variable) { try key.set(&configuration, text) }
        }
        var rest: [String] = []
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard argument.hasPrefix("--"), let key = all.first(where: { $0.flag == parts[0] }) else {
                rest.append(argument)
                continue
            }
            if parts.count == 2 {
                try key.set(&configuration, String(parts[1]))
            } else if key.isSwitch {
                try key.set(&configuration, "true")
            } else if index < arguments.count {
                try key.set(&configuration, arguments[index])
                index += 1
            } else {
                throw ConfigurationError("\(key.flag) needs a value")
            }
        }
        return rest
    }
}

import Glibc
import HTTPMessages
package import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import TidingsModels

/// Hub and gateway as processes of their own, which are killed and started again on the same ports and state.
package actor ServiceProcesses {
    package static let hubName = "crash"
    private let folder: String
    private let ports: (gateway: ReservedPort, hub: ReservedPort)
    package private(set) var gateway: Programs.Running?
    package private(set) var hub: Programs.Running?
    package private(set) var gatewayURL = ""
    package private(set) var hubURL = ""

    package init(folder: String) throws {
        self.folder = folder
        ports = (try ReservedPort(), try ReservedPort())
    }

    package func start() async throws {
        try await startGateway()
        try writeHubConfiguration()
        try await startHub()
    }

    private func startGateway() async throws {
        let process = try Programs.start(
            "tidings",
            [
                "serve", "--services", "gateway", "--state", folder + "/gateway", "--gateway-address",
                "127.0.0.1:\(ports.gateway.number)",
            ]
        )
        gateway = process
        gatewayURL = try await address(process, "gateway")
    }

    private func startHub() async throws {
        let process = try Programs.start(
            "tidings",
            [
                "serve", "--services", "hub", "--state", folder + "/hub", "--config", folder + "/hub.json",
                "--hub-address", "127.0.0.1:\(ports.hub.number)",
            ]
        )
        hub = process
        hubURL = try await address(process, "hub")
    }

    private func address(_ process: Programs.Running, _ service: String) async throws -> String {
        let line = try await process.nextLine()
        guard let url = try? JSONValue(parsing: Array(line.utf8))[service]?.stringValue else {
            throw WorldFailure("the \(service) did not start: \(try await process.end().errors)")
        }
        return url
    }

    /// The hub sends to the gateway with the credentials that the gateway issued.
    private func writeHubConfiguration() throws {
        let keys = try JSONValue(parsing: try Files.read(folder + "/gateway/keys/gateway.json") ?? [])
        func text(_ part: String, _ name: String) -> JSONValue { keys[part]?[name] ?? .null }
        let keyID = keys["apns"]?["keyId"]?.stringValue ?? ""
        let settings = JSONValue.object([
            "name": .string(Self.hubName),
            "apns": .object([
                "endpoint": .string(gatewayURL), "keyId": .string(keyID), "teamId": text("apns", "teamId"),
                "bundleId": "net.example.crash",
                "keyFile": .string(folder + "/gateway/keys/AuthKey_\(keyID).p8"),
            ]),
            "fcmV1": .object([
                "endpoint": .string(gatewayURL),
                "serviceAccountFile": .string(folder + "/gateway/keys/fcm-service-account.json"),
            ]),
            "wns": .object([
                "packageSid": text("wns", "packageSid"), "secretKey": text("wns", "secretKey"),
                "tokenURL": .string(gatewayURL + "/accesstoken.srf"),
                "gatewayOrigins": .array([.string(gatewayURL)]),
            ]),
        ])
        let configuration = JSONValue.object(["hub": .object(["hubs": .array([settings])])])
        try Files.replace(folder + "/hub.json", with: configuration.serialized())
    }

    package func hubClient() async throws -> HubClient {
        let output = try await Programs.run(
            "tidings",
            ["keys", "--state", folder + "/hub", "--endpoint", hubURL],
            [:]
        )
        guard let line = output.lines.first(where: { $0.contains("DefaultFull") }) else {
            throw WorldFailure("there is no connection string: \(output.errors)")
        }
        return HubClient(
            try HubConnectionString(parsing: ASCII.trimmed(line)),
            hub: Self.hubName,
            client: HTTPClient(),
            time: SystemTimeSource()
        )
    }

    /// kill -9, and a new start at once.
    package func crashHub() async throws {
        guard let process = hub else { return }
        process.send(SIGKILL)
        _ = try await process.end()
        try await startHub()
    }

    package func crashGateway() async throws {
        guard let process = gateway else { return }
        process.send(SIGKILL)
        _ = try await process.end()
        try await startGateway()
    }

    /// A counter of the gateway's present process.
    package func gatewayCounter(_ name: String) async throws -> Int {
        guard let url = HTTPURL(gatewayURL + "/-/metrics") else { return 0 }
        let text = try await HTTPClient().send(OutboundRequest("GET", url)).text
        let line = text.split(separator: "\n").first { $0.hasPrefix("tidings_\(name) ") }
        return line.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) } ?? 0
    }

    /// - Returns: What each wrote to standard error.
    @discardableResult
    package func stop() async -> [String] {
        var texts: [String] = []
        for process in [hub, gateway] {
            process?.send(SIGTERM)
            if let errors = try? await process?.end().errors { texts.append(errors) }
        }
        (hub, gateway) = (nil, nil)
        return texts
    }
}

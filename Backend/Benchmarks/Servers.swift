import Foundation
import Glibc
import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import TLSTransport
import TidingsModels

/// `tidings serve --dev` on free ports, in a folder of its own.
struct TidingsProcess {
    let process: MeasuredProcess
    let state: String
    /// `localhost:port`.
    let hub: String
    let gateway: String
    private let connection: HubConnectionString
    private let connectionText: String

    /// - Parameter core: Of the server; `.load` when it is the door for a sender that is measured.
    init(on core: MeasuredProcess.Core = .measured) throws {
        state = try Files.makeScratchFolder("tidings-benchmark")
        let address = "127.0.0.1:0"
        process = try MeasuredProcess(
            Programs.tidings,
            [
                "serve", "--dev", "--state", state, "--backend-address", address, "--hub-address", address,
                "--gateway-address", address,
            ],
            on: core
        )
        let line = try JSONValue(parsing: Array(try process.firstLine().utf8))
        hub = try Self.authority(line["hub"])
        gateway = try Self.authority(line["gateway"])
        let keys = try MeasuredProcess(
            Programs.tidings,
            ["keys", "--state", state, "--endpoint", "https://" + hub],
            on: .load
        ).result()
        guard
            let text = keys.split(separator: "\n").first(where: { $0.contains(AccessPolicy.fullName) }).map({
                ASCII.trimmed($0)
            })
        else { throw BenchmarkError("`tidings keys` did not print a connection string") }
        connectionText = text
        connection = try HubConnectionString(parsing: text)
    }

    /// The hub that `--dev` makes.
    static let hubName = "tidings"

    func client() -> HubClient {
        let trust = OutboundTrust(authorityFiles: ["https://" + hub: state + "/ca/ca.pem"])
        return HubClient(
            connection,
            hub: Self.hubName,
            client: HTTPClient(trust: trust),
            time: SystemTimeSource()
        )
    }

    /// The value of an Authorization header for the hub, good for an hour.
    func authorization() -> String {
        SharedAccessSignature.make(
            resource: "https://\(hub)/\(Self.hubName)",
            keyName: connection.keyName,
            key: connectionText.split(separator: "=", maxSplits: 3).last.map(String.init) ?? "",
            expires: SystemTimeSource().now + .seconds(3600)
        )
    }

    private static func authority(_ url: JSONValue?) throws -> String {
        guard let text = url?.stringValue, text.hasPrefix("https://") else {
            throw BenchmarkError("tidings serve did not say where it listens")
        }
        return String(text.dropFirst("https://".count))
    }

    var certificateAuthority: [UInt8] {
        get throws { try Files.read(state + "/ca/ca.pem") ?? [] }
    }

    /// The secrets that the gateway issued.
    func gatewayKeys() throws -> JSONValue {
        try JSONValue(parsing: try Files.read(state + "/keys/gateway.json") ?? [])
    }

    /// Handles of so many devices, which came once and are away.
    func handles(_ count: Int, _ platform: Platform?, key: String? = nil) async throws -> [String] {
        guard let url = HTTPURL("http://" + gateway) else {
            throw BenchmarkError("'\(gateway)' is no authority")
        }
        var handles: [String] = []
        for _ in 0..<count {
            let device = try await IdleDevice.register(url, nil, platform, key: key)
            device.close()
            handles.append(device.handle)
        }
        return handles
    }

    func stop() {
        process.stop()
        Files.removeTree(state)
    }
}

/// nginx as one process with one worker, answering two bytes to everything, and a file: the price mark of an HTTP server.
struct NginxProcess {
    let process: MeasuredProcess
    let folder: String
    let plain: Int
    let secure: Int

    /// - Parameters:
    ///   - authorityFolder: Signs its certificate, so that the same client trusts both servers.
    ///   - answer: What `GET /answer.json` gives.
    init(connectionCountMax: Int, authorityFolder: String, answer: [UInt8] = []) async throws {
        folder = try Files.makeScratchFolder("tidings-benchmark-nginx")
        (plain, secure) = (try Self.freePort(), try Self.freePort())
        let leaf = try DevelopmentAuthority(
            certificate: Files.read(authorityFolder + "/ca.pem") ?? [],
            privateKey: Files.read(authorityFolder + "/ca-key.pem") ?? []
        ).makeLeaf()
        try Files.replace(folder + "/chain.pem", with: leaf.certificateChain)
        try Files.replace(folder + "/key.pem", with: leaf.privateKey)
        let configuration = """
            daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/error.log;
            events { worker_connections \(connectionCountMax); }
            http {
                access_log off; keepalive_timeout 600s; keepalive_requests 100000000; ssl_session_cache none;
                ssl_session_tickets off; client_body_temp_path \(folder)/body; proxy_temp_path \(folder)/proxy;
                fastcgi_temp_path \(folder)/fastcgi; uwsgi_temp_path \(folder)/uwsgi; scgi_temp_path \(folder)/scgi;
                server {
                    listen 127.0.0.1:\(plain) backlog=1024; listen 127.0.0.1:\(secure) ssl backlog=1024;
                    ssl_certificate \(folder)/chain.pem; ssl_certificate_key \(folder)/key.pem;
                    location / { return 200 ok; }
                    location = /answer.json { root \(folder); }
                }
            }
            """
        try Files.replace(folder + "/answer.json", with: answer)
        try Files.replace(folder + "/nginx.conf", with: Array(configuration.utf8))
        process = try MeasuredProcess(
            Programs.installed("nginx"),
            ["-p", folder, "-e", folder + "/error.log", "-c", folder + "/nginx.conf"],
            on: .measured
        )
        try await waitUntilListening()
    }

    /// nginx tells nobody when it listens, so this asks, for five seconds at most.
    private func waitUntilListening() async throws {
        for _ in 0..<500 {
            let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(probe) }
            if Self.withAddress(port: plain, { connect(probe, $0, $1) }) == 0 { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw BenchmarkError("nginx does not listen; see \(folder)/error.log")
    }

    private static func freePort() throws -> Int {
        let probe = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(probe) }
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = withAddress(port: 0) { bind(probe, $0, $1) }
        let named = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(probe, $0, &length) }
        }
        guard bound == 0, named == 0 else { throw BenchmarkError("no free port: errno \(errno)") }
        return Int(in_port_t(bigEndian: address.sin_port))
    }

    private static func withAddress(
        port: Int,
        _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    func stop() {
        process.stop()
        Files.removeTree(folder)
    }
}

import Glibc
import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import TLSTransport
import Testing
import TidingsModels
import TidingsBackend
import TidingsConformance

/// The programs as an operator runs them: started, signalled, ended.
@Suite("Programs", .timeLimit(.minutes(5)))
struct OperatorPrograms {
    private static let anyPort = [
        "--backend-address", "127.0.0.1:0", "--hub-address", "127.0.0.1:0", "--gateway-address",
        "127.0.0.1:0",
    ]

    private func ready(_ server: Programs.Running) async throws -> JSONValue {
        try JSONValue(parsing: Array(try await server.nextLine().utf8))
    }

    @Test(
        "tidings serve ends on SIGTERM and SIGINT after a drain, with 0, and not on SIGHUP",
        arguments: [SIGTERM, SIGINT]
    )
    func serve(signal: Int32) async throws {
        try await ScratchFolder.run { folder in
            let server = try Programs.start(
                "tidings",
                ["serve", "--dev", "--state", folder + "/s"] + Self.anyPort
            )
            let line = try await ready(server)
            #expect(line["event"]?.stringValue == "ready")
            #expect(line["pid"]?.integerValue == Int(server.process))
            server.send(SIGHUP)
            // Still there: it answers.
            let url = try #require(HTTPURL((line["hub"]?.stringValue ?? "") + "/-/health"))
            var trust = OutboundTrust()
            trust.authorityFiles[url.origin] = line["ca"]?.stringValue
            let answer = try await HTTPClient(trust: trust).send(OutboundRequest("GET", url))
            #expect(answer.status.code == 200)
            server.send(signal)
            let (status, errors) = try await server.end()
            #expect(status == 0, "\(errors)")
        }
    }

    @Test("tidings-device run ends on SIGTERM with 0, also while the gateway is away")
    func device() async throws {
        try await World.run { world in
            try await ScratchFolder.run { folder in
                let arguments = ["run", "--state", folder + "/d", "--ca", try world.authorityFile]
                let device = try Programs.start(
                    "tidings-device",
                    arguments + ["--gateway", try world.gatewayURL]
                )
                #expect(try await device.nextLine().contains("\"connected\""))
                #expect(try await device.nextLine().contains("\"handle\""))
                device.send(SIGTERM)
                #expect(try await device.end().status == 0)

                let lost = try Programs.start(
                    "tidings-device",
                    arguments + ["--gateway", "http://127.0.0.1:1"]
                )
                #expect(try await lost.nextLine().contains("\"disconnected\""))
                lost.send(SIGINT)
                #expect(try await lost.end().status == 0)
            }
        }
    }

    @Test("the device's remote control as a user types it: login from standard input, send, inbox, status")
    func remoteControl() async throws {
        try await World.run { world in
            try await ScratchFolder.run { folder in
                let state = folder + "/d"
                let device = try Programs.start(
                    "tidings-device",
                    [
                        "run", "--state", state, "--ca", try world.authorityFile, "--gateway",
                        try world.gatewayURL,
                        "--backend", try world.backendURL,
                    ]
                )
                func control(_ arguments: [String], input: String = "") async throws -> Programs.Output {
                    try await Programs.run(
                        "tidings-device",
                        arguments + ["--state", state],
                        [:],
                        input: input
                    )
                }
                let ready = try await control(["status", "--wait"])
                #expect(ready.lines.first?.contains("\"handle\"") == true, "\(ready.errors)")
                let early = try await control(["send", "--to", "alice", "Hi"])
                #expect(early.status == 1 && early.errors.contains("log in first"))
                let wrong = try await control(["login", "alice"], input: "wrong\n")
                #expect(wrong.status == 1)
                #expect(wrong.errors.contains("403 The back end refuses the user name or the password."))
                let login = try await control(["login", "alice"], input: "alice\n")
                #expect(login.status == 0 && login.lines.first?.contains("\"user\":\"alice\"") == true)

                let sent = try await control(["send", "--to", "alice", "--platform", "apns,mpns", "Hi"])
                #expect(sent.status == 1)
                #expect(sent.lines.map { $0.prefix(8) } == ["apns: ok", "mpns: fa"])
                #expect(try await control(["send", "--secure", "The PIN is 4711"]).status == 0)
                // Two sends are two: a hub promises no order between them.
                var awaited: Set = ["4711", "From alice: Hi"]
                while !awaited.isEmpty {
                    let event = try await device.nextLine()
                    awaited = awaited.filter { !event.contains($0) }
                }
                let inbox = try await control(["inbox"])
                #expect(inbox.status == 0 && inbox.lines.count == 2)
                #expect(inbox.lines.contains { $0.contains("The PIN is 4711") })
                #expect(try await control(["logout"]).status == 0)
                #expect(try await control(["inbox"]).lines.isEmpty)
                device.send(SIGTERM)
                #expect(try await device.end().status == 0)
            }
        }
    }

    @Test("a backup of a server under load has everything that was acknowledged before it, and can be served")
    func backup() async throws {
        try await ScratchFolder.run { folder in
            var configuration = ServerConfiguration(statePath: folder + "/state")
            configuration.isDevelopment = true
            configuration.useFreePorts()
            let server = try await TidingsServer.start(configuration)
            func hub(_ server: TidingsServer) throws -> HubClient {
                let text =
                    server.endpoints.connectionStrings["tidings"]?["DefaultFullSharedAccessSignature"] ?? ""
                let connection = try HubConnectionString(parsing: text)
                let trust = OutboundTrust(
                    authorityFiles: [server.endpoints.hub ?? "": server.endpoints.authorityFile ?? ""]
                )
                return HubClient(
                    connection,
                    hub: "tidings",
                    client: HTTPClient(trust: trust),
                    time: SystemTimeSource()
                )
            }
            let live = try hub(server)
            let acknowledged = AsyncStream.makeStream(of: RegistrationID.self)
            let writers = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for writer in 0..<8 {
                        group.addTask {
                            var index = 0
                            while !Task.isCancelled {
                                index += 1
                                let handle = "AB\(writer)0" + String(100_000 + index)
                                let content = RegistrationContent(
                                    handle: try PlatformHandle(handle, platform: .apns),
                                    tags: [try HubTag("w\(writer)")]
                                )
                                acknowledged.continuation.yield(try await live.create(content).id)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
            }
            var before: [RegistrationID] = []
            for await id in acknowledged.stream {
                before.append(id)
                if before.count == 300 { break }
            }
            let copy = folder + "/copy"
            let output = try await Programs.run(
                "tidings",
                ["backup", copy, "--state", folder + "/state"],
                [:]
            )
            #expect(output.status == 0, "\(output.errors)")
            #expect(output.lines.first?.contains("files of") == true)
            writers.cancel()
            _ = try? await writers.value
            let again = try await Programs.run(
                "tidings",
                ["backup", copy, "--state", folder + "/state"],
                [:]
            )
            #expect(again.status == 64 && again.errors.contains("exists already"))
            await server.stop()

            configuration.statePath = copy
            let restored = try await TidingsServer.start(configuration)
            let client = try hub(restored)
            for id in before { #expect(try await client.registration(id) != nil) }
            await restored.stop()
        }
    }

    private func health(_ url: String, trusting file: String) async throws -> Int {
        let url = try #require(HTTPURL(url + "/-/health"))
        let trust = OutboundTrust(authorityFiles: [url.origin: file])
        return try await HTTPClient(trust: trust).send(OutboundRequest("GET", url)).status.code
    }

    @Test("a reload takes a new certificate for new connections; files that cannot be used change nothing")
    func reload() async throws {
        try await ScratchFolder.run { folder in
            func issue(_ name: String) throws -> String {
                let authority = try DevelopmentAuthority.make()
                let leaf = try authority.makeLeaf()
                try Files.replace(folder + "/leaf.pem", with: leaf.certificateChain)
                try Files.replace(folder + "/key.pem", with: leaf.privateKey)
                try Files.replace("\(folder)/\(name).pem", with: authority.certificate)
                return "\(folder)/\(name).pem"
            }
            let first = try issue("first")
            var configuration = ServerConfiguration(statePath: folder + "/state")
            configuration.services = [.gateway]
            configuration.gatewayAddress = .init(host: "localhost", port: 0)
            (configuration.certificateFile, configuration.privateKeyFile) = (
                folder + "/leaf.pem", folder + "/key.pem"
            )
            let server = try await TidingsServer.start(configuration)
            let url = try #require(server.endpoints.gateway)
            #expect(try await health(url, trusting: first) == 200)

            let second = try issue("second")
            try await server.reload()
            #expect(try await health(url, trusting: second) == 200)
            await #expect(throws: OutboundError.self) { try await health(url, trusting: first) }

            try Files.replace(folder + "/key.pem", with: Array("no key".utf8))
            await #expect(throws: ConfigurationError.self) { try await server.reload() }
            #expect(try await health(url, trusting: second) == 200)
            await server.stop()
        }
    }

    @Test("tidings broadcasts: set, listed, changed, removed, at a gateway in production")
    func broadcasts() async throws {
        try await ScratchFolder.run { folder in
            let gateway = try Programs.start(
                "tidings",
                ["serve", "--services", "gateway", "--state", folder + "/g"] + Self.anyPort
            )
            let url = try await ready(gateway)["gateway"]?.stringValue ?? ""
            func broadcasts(_ arguments: String...) async throws -> Programs.Output {
                try await Programs.run("tidings", ["broadcasts"] + arguments, ["TIDINGS_GATEWAY": url])
            }
            let id = "remote-settings/monitor_changes"
            for version in ["\"1\"", "\"2\""] {
                #expect(try await broadcasts("set", id, version).status == 0)
            }
            #expect(try await broadcasts("set", "b", "1").status == 0)
            #expect(try await broadcasts().lines == ["b  1  0", "\(id)  \"2\"  0"])
            #expect(try await broadcasts("remove", "b").status == 0)
            let json = try await broadcasts("--json").lines
            let list = #"{"broadcasts":[{"id":"\#(id)","version":"\"2\"","subscribers":0}]}"#
            #expect(json == [list])
            let unknown = try await broadcasts("remove", "b")
            #expect(unknown.status == 64 && unknown.errors.contains("There is no broadcast 'b'."))
            gateway.send(SIGTERM)
            #expect(try await gateway.end().status == 0)
        }
    }

    /// A mistake on the command line, and what the one line that answers it must name.
    private static let mistakes: [(program: String, arguments: String, named: String)] = [
        ("tidings", "send World --template a=b", "'World'"), ("tidings", "send --template a=b", "--everyone"),
        ("tidings", "send --tag= --template a=b", "--tag is empty"),
        ("tidings", "send --tag a --everyone --template a=b", "--tag does not go"),
        ("tidings", "send --news --tag a", "--tag does not go"),
        ("tidings", "send --tag a --template =b", "NAME=VALUE"),
        ("tidings", "send --tag a --template a=b --native apns {}", "--template does not go"),
        ("tidings", "send --tag a --bogus", "--bogus"), ("tidings", "registrations --top abc", "'abc'"),
        ("tidings", "registrations --top 0", "'0'"), ("tidings", "registrations more", "'more'"),
        ("tidings", "registrations --tag a --handle b", "--handle"),
        ("tidings", "registrations --connection rubbish", "neither a connection string"),
        ("tidings", "registrations --connection Endpoint=x", "--connection"),
        ("tidings", "registrations --ca /nowhere", "/nowhere"), ("tidings", "outcomes", "missing"),
        ("tidings", "users list --state /nowhere", "/nowhere"),
        ("tidings", "broadcasts dance", "'dance'"), ("tidings", "broadcasts set a", "a version"),
        ("tidings", "broadcasts set a 1 more", "'more'"), ("tidings", "broadcasts remove", "an id"),
        ("tidings", "broadcasts remove a more", "'more'"), ("tidings", "broadcasts --bogus", "--bogus"),
        ("tidings", "broadcasts --gateway nowhere", "nowhere"),
        ("tidings", "keys --state /nowhere", "/nowhere"),
        ("tidings-device", "inbox more", "'more'"),
        ("tidings-device", "run more --gateway https://localhost", "'more'"),
        ("tidings-device", "send --to a --platform= Hi", "--platform"),
        ("tidings-device", "send --secure x --platform apns", "--platform"),
        ("tidings-device", "run --gateway nowhere", "nowhere"), ("tidings-device", "dance", "dance"),
    ]

    @Test("a mistake is answered in one line that names it, with exit code 64", arguments: mistakes.indices)
    func mistake(index: Int) async throws {
        let (program, arguments, named) = Self.mistakes[index]
        let output = try await Programs.run(
            program,
            arguments.split(separator: " ").map(String.init),
            ["TIDINGS_CONNECTION": "Endpoint=http://127.0.0.1:1/;SharedAccessKeyName=a;SharedAccessKey=b"]
        )
        #expect(output.status == 64, "\(arguments): \(output.errors)")
        #expect(output.lines.isEmpty)
        #expect(output.errors.contains(named), "\(arguments): \(output.errors)")
        #expect(output.errors.split(separator: "\n").count == 1, "\(arguments): \(output.errors)")
    }
}

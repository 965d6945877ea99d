import Glibc
import HTTPMessages
import JSONBytes
import OutboundHTTP
import Testing
import TidingsConformance

/// The programs as an operator runs them: started, signalled, ended.
@Suite("Programs", .timeLimit(.minutes(2)))
struct ProgramSignals {
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
}

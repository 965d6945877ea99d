import DeviceLink
import HTTPMessages
import HTTPServing
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushGateway
import PushTelemetry
import Testing
import TidingsConformance
import TidingsModels

/// A gateway alone, on a port of 127.0.0.1, without TLS.
struct TestGateway {
    let gateway: PushGateway
    let url: HTTPURL
    let counters: Counters
    private let server: HTTPServer

    /// Making keys takes longer than all the rest.
    private static let credentials = Result { try GatewayCredentials.make() }

    static func start(
        _ mailbox: any Mailbox,
        port: Int = 0,
        _ times: GatewayLinkTimes = GatewayLinkTimes()
    ) async throws -> TestGateway {
        let counters = Counters()
        let log = Log("gateway", to: .inMemory())
        let gateway = PushGateway(
            mailbox: mailbox,
            credentials: try credentials.get(),
            origin: { "http://127.0.0.1" },
            time: SystemTimeSource(),
            log: log,
            counters: counters,
            broadcasts: try await mailbox.broadcasts(),
            times: times
        )
        let server = HTTPServer(log: log, counters: counters, httpDate: { "" }) { request in
            request.target.segments.first == "-"
                ? await gateway.respondToOperator(request) : await gateway.respond(to: request)
        }
        let port = try server.start(host: "127.0.0.1", port: port)
        return TestGateway(
            gateway: gateway,
            url: try #require(HTTPURL("http://127.0.0.1:\(port)")),
            counters: counters,
            server: server
        )
    }

    func stop() async { await server.drain() }

    /// A gateway with a mailbox of its own, which ends with it.
    static func run(
        _ times: GatewayLinkTimes = GatewayLinkTimes(),
        _ body: (TestGateway) async throws -> Void
    ) async throws {
        try await withMailbox { mailbox in
            let gateway = try await start(mailbox, times)
            do { try await body(gateway) } catch {
                await gateway.stop()
                throw error
            }
            await gateway.stop()
        }
    }

    static func withMailbox(_ body: (SQLiteMailbox) async throws -> Void) async throws {
        let folder = try Files.makeScratchFolder("tidings-gateway")
        defer { Files.removeTree(folder) }
        let mailbox = try SQLiteMailbox(path: folder + "/gateway.sqlite")
        defer { mailbox.close() }
        try await body(mailbox)
    }

    /// The status and the JSON of `/-/broadcasts…`.
    @discardableResult
    func broadcasts(
        _ method: String,
        _ id: String = "",
        _ body: String? = nil,
        contentType: String = "application/json"
    ) async throws -> (status: Int, json: JSONValue?) {
        let answer = try await HTTPClient().send(
            OutboundRequest(
                method,
                try #require(HTTPURL("\(url.origin)/-/broadcasts\(id.isEmpty ? "" : "/")\(id)")),
                fields: body == nil ? [:] : ["Content-Type": contentType],
                body: body.map { Array($0.utf8) }
            )
        )
        return (answer.status.code, try? JSONValue(parsing: answer.body))
    }

    func set(_ id: String, _ version: String) async throws {
        let status = try await broadcasts("PUT", id, "{\"version\":\"\(version)\"}").status
        #expect(status == 204)
    }
}

import Dispatch
import HTTPMessages
import OutboundHTTP
import ProcessLifecycle
import PushTelemetry
import SQLiteStorage
import Testing
import TidingsConformance
import TidingsModels

@testable import HTTPServing
@testable import TidingsBackend

@Suite("Operation")
struct OperationTests {
    @Test("metrics: every queue, outcome, connection, lag and commit, in the exposition format")
    func metrics() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("phone", .apns)
            _ = try await hub.create(
                RegistrationContent(
                    handle: try PlatformHandle(try await device.handle(), platform: .apns),
                    tags: [try HubTag("a")]
                )
            )
            let id = try await hub.send(.native(.apns, "{\"aps\":{\"alert\":\"x\"}}"), tags: "a")
            _ = try await world.outcome(try #require(id))
            #expect(try await device.nextText() == "x")

            let answer = try await world.request("GET", try world.gatewayURL + "/-/metrics")
            #expect(answer.fields["Content-Type"]?.hasPrefix("text/plain; version=0.0.4") == true)
            var types: [Substring: Substring] = [:]
            var current: Substring = ""
            var samples: [String: Double] = [:]
            for line in answer.text.split(separator: "\n") {
                let words = line.split(separator: " ")
                if words[0] == "#" {
                    #expect(words.count == 4 && words[1] == "TYPE" && types[words[2]] == nil, "\(line)")
                    (types[words[2]], current) = (words[3], words[2])
                    continue
                }
                #expect(words.count == 2 && words[0].hasPrefix(current), "\(line) below \(current)")
                #expect(samples[String(words[0])] == nil, "\(line) stands twice")
                samples[String(words[0])] = Double(String(words[1]))
                #expect(samples[String(words[0])] != nil, "\(line)")
            }
            #expect(samples["tidings_hub_outcomes_total{platform=\"apns\",outcome=\"Success\"}"] == 1)
            #expect(samples["tidings_hub_sends_total{state=\"Completed\"}"] == 1)
            #expect(samples["tidings_gateway_devices_connected"] == 1)
            #expect(samples["tidings_gateway_messages_total{platform=\"apns\"}"] == 1)
            #expect(samples["tidings_hub_sends_waiting{hub=\"tidings\"}"] == 0)
            let resident = try #require(samples["tidings_process_resident_bytes"])
            #expect(resident > 1_048_576)
            for name in [
                "tidings_hub_sends_under_way{hub=\"tidings\"}", "tidings_hub_sends_resting{hub=\"tidings\"}",
                "tidings_gateway_messages_waiting", "tidings_gateway_hellos_waiting",
                "tidings_gateway_hellos_under_way", "tidings_gateway_broadcast_subscriptions",
                "tidings_http_connections{service=\"gateway\"}",
                "tidings_http_queued_bytes{service=\"hub\"}",
                "tidings_http_queued_bytes_peak{service=\"backend\"}",
                "tidings_database_waiting_writes{database=\"hub:tidings\"}",
                "tidings_database_waiting_reads{database=\"backend\"}",
                "tidings_database_commit_size_count{database=\"gateway\"}",
                "tidings_database_commit_seconds_bucket{database=\"gateway\",le=\"+Inf\"}",
                "tidings_loop_lag_seconds_count", "tidings_process_open_descriptors",
                "tidings_process_cpu_seconds",
                "tidings_http_requests_total", "tidings_http_connections_total",
            ] { #expect(samples[name] != nil, "\(name)") }
            let commits = try #require(samples["tidings_database_commit_seconds_count{database=\"gateway\"}"])
            #expect(commits >= 2)
        }
    }

    @Test(
        "metrics and broadcasts are for this machine and the addresses that the configuration names for each"
    )
    func operatorAddresses() async throws {
        let routes = OwnRoutes(
            metrics: Metrics(),
            readiness: Readiness(),
            metricsAddresses: ["192.0.2.7"],
            broadcasts: { _ in HTTPResponse(204) },
            broadcastAddresses: ["192.0.2.9"]
        )
        for (address, path, status) in [
            ("127.0.0.1", "metrics", 200), ("::1", "metrics", 200), ("192.0.2.7", "metrics", 200),
            ("192.0.2.9", "metrics", 403), ("", "metrics", 403), ("127.0.0.1", "broadcasts/a/b", 204),
            ("::1", "broadcasts", 204), ("192.0.2.9", "broadcasts/a", 204),
            ("192.0.2.7", "broadcasts/a", 403), ("", "broadcasts", 403),
        ] {
            var request = HTTPRequest(
                head: HTTPRequestHead(
                    method: "GET",
                    target: try #require(RequestTarget("/-/" + path)),
                    fields: [:],
                    version: .http11,
                    scheme: "http",
                    authority: "h"
                ),
                body: RequestBody(declaredByteCount: 0, onDemand: {})
            )
            request.clientAddress = address
            #expect(await routes.respond(to: request).status.code == status, "\(address) \(path)")
        }
    }

    @Test("ready: not while a database does not answer, not when stopping; health goes on")
    func readiness() async throws {
        let folder = try Files.makeScratchFolder("tidings-ready")
        defer { Files.removeTree(folder) }
        let database = try Database(path: folder + "/a.sqlite", schema: .init(["CREATE TABLE t (x)"]))
        let readiness = Readiness()
        readiness.add("a", database)
        #expect(await readiness.problems().isEmpty)

        // A writer that hangs until it is let go.
        let gate = Gate()
        async let held: Void = database.write { _ in gate.wait() }
        await gate.entered()
        let problems = await readiness.problems()
        #expect(
            problems.count == 1 && problems[0].hasPrefix("the database a has not answered for "),
            "\(problems)"
        )
        // The question stands; who asks again does not wait again.
        let again = await readiness.problems()
        #expect(again.count == 1 && again[0].hasPrefix("the database a has not answered for "))
        gate.open()
        try await held
        try await database.write { _ in }
        var after = await readiness.problems()
        while !after.isEmpty { after = await readiness.problems() }

        database.close()
        let closed = await readiness.problems()
        #expect(closed.count == 1 && closed[0].contains("fails"))
        readiness.drain()
        #expect(await readiness.problems() == ["stopping"])
    }
}

/// Holds a database thread.
private final class Gate: Sendable {
    private let opening = DispatchSemaphore(value: 0)
    private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

    func wait() {
        continuation.finish()
        opening.wait()
    }

    func entered() async { for await _ in stream {} }
    func open() { opening.signal() }
}

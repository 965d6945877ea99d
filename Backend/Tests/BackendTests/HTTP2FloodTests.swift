import HTTPServing
import PushTelemetry
import TidingsConformance
import Testing

/// Floods that brought HTTP/2 servers down: each is cut off before it costs much, and the server goes on for others.
@Suite("HTTP/2 floods")
struct HTTP2FloodTests {
    @Test("rapid reset (CVE-2023-44487): closed after a small part of fifty thousand, the rest is not served")
    func rapidReset() async throws {
        try await EchoServer.run { server in
            _ = try await RawConnection.bytes(HTTP2Flood.rapidReset.bytes, with: server.address)
            let served = server.counters["http_requests_total"]
            #expect(served < 5000, "\(served) requests")
            #expect(
                try await server.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").hasPrefix(
                    "HTTP/1.1 200"
                )
            )
        }
    }

    @Test("a header block that never ends (CVE-2024-28182): closed with GOAWAY")
    func continuations() async throws {
        try await EchoServer.run { server in
            let answer = try await RawConnection.bytes(HTTP2Flood.continuations.bytes, with: server.address)
            #expect(HTTP2Flood.endsInGoAway(answer))
            #expect(server.counters["http_requests_total"] == 0)
        }
    }

    @Test(
        "pings and settings without end: what is queued for a peer that does not read is bounded, then it is closed",
        arguments: [HTTP2Flood.pings, .settings]
    )
    func controlFrames(flood: HTTP2Flood) async throws {
        try await EchoServer.run { server in
            let answer = try await RawConnection.bytes(flood.bytes, with: server.address)
            #expect(answer.count <= HTTP2Flood.count * 17 + 4096)
            #expect(
                try await server.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").hasPrefix(
                    "HTTP/1.1 200"
                )
            )
        }
    }

    @Test("a server that stops says so in its GOAWAY, as APNs does")
    func farewell() async throws {
        let text = #"{"reason":"Shutdown"}"#
        let counters = Counters()
        let server = HTTPServer(
            log: Log("test", to: .inMemory()),
            counters: counters,
            httpDate: { "" },
            farewell: Array(text.utf8)
        ) { _ in HTTPResponse(200) }
        let port = try server.start(host: "127.0.0.1", port: 0)
        let greeting = HTTP2Flood.preface + HTTP2Flood.frame(4, 0, 0, [])
        async let answer = RawConnection.bytes(greeting, with: "http://127.0.0.1:\(port)")
        while counters["http_connections_total"] == 0 { await Task.yield() }
        await server.drain(within: .seconds(5))
        let bytes = try await answer
        #expect(bytes.suffix(text.utf8.count) == Array(text.utf8)[...])
    }

    @Test(
        "half a header block, then silence: closed when the time for a head is over",
        .timeLimit(.minutes(5))
    )
    func slowHead() async throws {
        var limits = ServerLimits()
        limits.headTimeout = .milliseconds(300)
        try await EchoServer.run(limits) { server in
            let half = HTTP2Flood.preface + HTTP2Flood.frame(1, 0x1, 1, HTTP2Flood.request)
            _ = try await RawConnection.bytes(half, with: server.address)
            // The peer sees the end before the loop has counted it.
            while server.counters["http_connections_timed_out_total"] == 0 { await Task.yield() }
            #expect(server.counters["http_connections_timed_out_total"] == 1)
            #expect(server.counters["http_requests_total"] == 0)
        }
    }
}

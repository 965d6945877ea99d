import HTTPServing
import TidingsConformance
import Testing

/// Floods that brought HTTP/2 servers down: each is cut off before it costs much, and the server goes on for others.
@Suite("HTTP/2 floods")
struct HTTP2FloodTests {
    private static let count = 50_000
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0, [])
    /// GET / of authority a, without the dynamic table (RFC 7541 appendix A: 2, 6, 4, 1).
    private static let request: [UInt8] = [0x82, 0x86, 0x84, 0x01, 0x01, 0x61]

    /// RFC 9113 section 4.1.
    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8]
    {
        let length = payload.count
        var bytes = [
            UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, flags,
        ]
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: stream >> UInt32(shift))) }
        return bytes + payload
    }

    private func isGoAway(_ answer: [UInt8]) -> Bool {
        // The last frame that arrived whole.
        var position = 0
        var last: UInt8 = 0
        while position + 9 <= answer.count {
            let length =
                Int(answer[position]) << 16 | Int(answer[position + 1]) << 8 | Int(answer[position + 2])
            last = answer[position + 3]
            position += 9 + length
        }
        return last == 7
    }

    @Test("rapid reset (CVE-2023-44487): closed after a small part of fifty thousand, the rest is not served")
    func rapidReset() async throws {
        try await EchoServer.run { server in
            var bytes = Self.preface
            for index in 0..<Self.count {
                let stream = UInt32(index * 2 + 1)
                bytes += Self.frame(1, 0x5, stream, Self.request) + Self.frame(3, 0, stream, [0, 0, 0, 8])
            }
            _ = try await RawConnection.bytes(bytes, with: server.address)
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
            var bytes = Self.preface + Self.frame(1, 0x1, 1, Self.request)
            for _ in 0..<Self.count { bytes += Self.frame(9, 0, 1, [0x00, 0x01, 0x78, 0x01, 0x79]) }
            let answer = try await RawConnection.bytes(bytes, with: server.address)
            #expect(isGoAway(answer))
            #expect(server.counters["http_requests_total"] == 0)
        }
    }

    @Test(
        "pings and settings without end: what is queued for a peer that does not read is bounded, then it is closed",
        arguments: [UInt8(6), 4]
    )
    func controlFrames(type: UInt8) async throws {
        try await EchoServer.run { server in
            let one = type == 6 ? Self.frame(6, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]) : Self.frame(4, 0, 0, [])
            var bytes = Self.preface
            for _ in 0..<Self.count { bytes += one }
            // GOAWAY of the client at the end, so that a server that answered them all closes as well.
            bytes += Self.frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0])
            let answer = try await RawConnection.bytes(bytes, with: server.address)
            #expect(answer.count <= Self.count * 17 + 4096)
            #expect(
                try await server.raw("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").hasPrefix(
                    "HTTP/1.1 200"
                )
            )
        }
    }

    @Test("half a header block, then silence: closed when the time for a head is over")
    func slowHead() async throws {
        var limits = ServerLimits()
        limits.headTimeout = .milliseconds(300)
        try await EchoServer.run(limits) { server in
            let half = Self.preface + Self.frame(1, 0x1, 1, Self.request)
            _ = try await RawConnection.bytes(half, with: server.address)
            #expect(server.counters["http_connections_timed_out_total"] == 1)
            #expect(server.counters["http_requests_total"] == 0)
        }
    }
}

import Glibc
import EventLoops
import HTTPMessages
import HTTPServing
import OutboundHTTP
import PushTelemetry
import TLSTransport
import Testing
import TidingsConformance

/// A server that echoes: `/echo` gives the body back, `/stream` a body in pieces, `/silent` reads nothing.
struct EchoServer {
    let address: String
    let server: HTTPServer
    let counters: Counters

    static func run(
        _ limits: ServerLimits = ServerLimits(),
        _ body: (EchoServer) async throws -> Void
    ) async throws {
        let counters = Counters()
        let server = HTTPServer(
            limits: limits,
            log: Log("test", to: .inMemory()),
            counters: counters,
            httpDate: { "Sun, 06 Nov 1994 08:49:37 GMT" }
        ) { request in
            switch request.target.segments.first {
            case "echo":
                guard let body = try? await request.body.collect(upTo: 1 << 20) else {
                    return HTTPResponse(413)
                }
                return HTTPResponse(200, ["X-Length": String(body.count)], body: body)
            case "stream":
                let pieces = Pieces(["alpha ", "", "beta ", "gamma"])
                var response = HTTPResponse(200)
                response.body = .stream(byteCount: nil) { await pieces.next() }
                return response
            case "busy":
                // Holds the loop itself, as too much work at a time would.
                usleep(900_000)
                return HTTPResponse(200)
            case "silent": return HTTPResponse(401, text: "no")
            default: return HTTPResponse(200, text: request.target.raw)
            }
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        do {
            try await body(
                EchoServer(address: "http://127.0.0.1:\(port)", server: server, counters: counters)
            )
        } catch {
            await server.drain(within: .zero)
            throw error
        }
        await server.drain(within: .seconds(2))
    }

    func raw(_ text: String) async throws -> String {
        try await RawConnection.exchange(Array(text.utf8), with: address)
    }
}

actor Pieces {
    private var left: [String]
    init(_ pieces: [String]) { left = pieces }
    func next() -> [UInt8]? {
        if left.isEmpty { return nil }
        return Array(left.removeFirst().utf8)
    }
}

@Suite("HTTP/1.1, strict (RFC 9112)")
struct HTTPServingTests {
    @Test(
        "each malformed request is refused and the connection closed; its twin is answered",
        arguments: MalformedRequest.table.indices
    )
    func malformed(index: Int) async throws {
        let request = MalformedRequest.table[index]
        let (name, bad, status, good) = (request.name, request.text, request.status, request.twin)
        try await EchoServer.run { server in
            // A second request behind it must not be answered: the connection is over.
            let refused = try await server.raw(bad + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(refused.hasPrefix("HTTP/1.1 \(status) "), "\(name): \(refused.prefix(60))")
            #expect(!refused.contains("smuggled"), "\(name)")
            let answered = try await server.raw(good)
            #expect(answered.hasPrefix("HTTP/1.1 200 "), "\(name): \(answered.prefix(60))")
        }
    }

    @Test("half a head, then silence: 408 and closed")
    func slowHead() async throws {
        var limits = ServerLimits()
        limits.headTimeout = .seconds(5)
        try await EchoServer.run(limits) { server in
            let half = try await server.raw("GET / HTTP/1.1\r\nHo")
            #expect(half.hasPrefix("HTTP/1.1 408 "))
        }
    }

    @Test("half a body, then silence: 408 and closed")
    func slowBody() async throws {
        var limits = ServerLimits()
        limits.bodyTimeout = .milliseconds(50)
        try await EchoServer.run(limits) { server in
            let half = try await server.raw("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab")
            #expect(half.hasPrefix("HTTP/1.1 408 "))
        }
    }

    @Test("pipelined requests are answered in order; HEAD has a length and no body")
    func pipelining() async throws {
        try await EchoServer.run { server in
            let answer = try await server.raw(
                "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n1HEAD /two HTTP/1.1\r\nHost: a\r\n\r\nGET /three HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            let parts = answer.split(separator: "HTTP/1.1 200 OK\r\n")
            try #require(parts.count == 3)
            #expect(parts[0].hasSuffix("\r\n\r\n1"))
            #expect(parts[1].contains("Content-Length: 4\r\n") && parts[1].hasSuffix("\r\n\r\n"))
            #expect(parts[2].hasSuffix("/three"))
        }
    }

    @Test("100 Continue is sent when the body is wanted, and not when it is refused")
    func expectContinue() async throws {
        var limits = ServerLimits()
        limits.bodyTimeout = .milliseconds(300)
        try await EchoServer.run(limits) { server in
            let wanted = try await server.raw(
                "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
            )
            #expect(wanted.hasPrefix("HTTP/1.1 100 Continue\r\n\r\n"))
            let refused = try await server.raw(
                "POST /silent HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
            )
            #expect(refused.hasPrefix("HTTP/1.1 401 "))
            #expect(refused.contains("Connection: close"))
        }
    }

    @Test("a body of unknown length goes out in chunks, and without them to HTTP/1.0")
    func chunkedAnswer() async throws {
        try await EchoServer.run { server in
            let chunked = try await server.raw("GET /stream HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            #expect(chunked.contains("Transfer-Encoding: chunked"))
            #expect(chunked.hasSuffix("6\r\nalpha \r\n5\r\nbeta \r\n5\r\ngamma\r\n0\r\n\r\n"))
            #expect(
                try await server.raw("GET /stream HTTP/1.0\r\n\r\n").hasSuffix("\r\n\r\nalpha beta gamma")
            )
        }
    }

    @Test(
        "HTTP/2: a short request is answered at its end; of a long one the rest is not wanted, and the stream is over"
    )
    func earlyAnswers() async throws {
        try await EchoServer.run { server in
            let end = HTTP2Flood.frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0])
            for (length, body) in [
                (5, HTTP2Flood.frame(0, 0x1, 1, Array("hello".utf8))), (2_000_000, []),
                (2_000_000, HTTP2Flood.frame(0, 0, 1, [1, 2, 3])),
            ] {
                let request = HTTP2Flood.post("/silent", stream: 1, length: length) + body
                let answer = try await RawConnection.bytes(
                    HTTP2Flood.preface + HTTP2Flood.frame(4, 0, 0, []) + request + end,
                    with: server.address
                )
                let frames = HTTP2Flood.frames(answer)
                // HEADERS, DATA and, without an error, RST_STREAM.
                let expected: [UInt8] = length == 5 ? [1, 0] : [1, 0, 3]
                #expect(frames.map(\.type).filter { [0, 1, 3].contains($0) } == expected)
                #expect(frames.filter { $0.type == 3 }.allSatisfy { $0.payload == [0, 0, 0, 0] })
            }
        }
    }

    @Test("a large upload that is answered early does not stall the connection")
    func earlyAnswer() async throws {
        try await EchoServer.run { server in
            let body = String(repeating: "y", count: 600_000)
            let answer = try await server.raw(
                "POST /silent HTTP/1.1\r\nHost: a\r\nContent-Length: 600000\r\n\r\n\(body)GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            )
            #expect(answer.hasPrefix("HTTP/1.1 401 "))
            #expect(answer.hasSuffix("/next"))
        }
    }

    @Test(
        "HTTP/2 with prior knowledge: many streams, bodies, streams of pieces, resets do not use up the window"
    )
    func http2() async throws {
        try await EchoServer.run { server in
            let url = try #require(HTTPURL(server.address))
            let pool = HTTP2Pool(origin: url, tls: nil, on: EventLoopGroup.shared.next())
            defer { pool.close() }
            let body = [UInt8](repeating: 7, count: 100_000)
            let requests = (0..<100).map { _ in HTTP2Request(path: "/echo", fields: [], body: body) }
            for result in await pool.send(requests) {
                let answer = try result.get()
                #expect(answer.status.code == 200 && answer.body == body)
            }
            let streamed = try await pool.send([HTTP2Request(path: "/stream", fields: [], body: [])])[0].get()
            #expect(streamed.text == "alpha beta gamma")
            // Answered without being read: the bytes must return to the connection's window.
            for _ in 0..<20 {
                for result in await pool.send(
                    (0..<10).map { _ in HTTP2Request(path: "/silent", fields: [], body: body) }
                ) {
                    #expect(try result.get().status.code == 401)
                }
            }
            let last = try await pool.send([HTTP2Request(path: "/echo", fields: [], body: body)])[0].get()
            #expect(last.body.count == 100_000)
        }
    }

    @Test("our client keeps no connection while it is idle, and makes one for the next request")
    func clientIdle() async throws {
        try await EchoServer.run { server in
            let client = HTTPClient(idleTimeout: .milliseconds(50))
            let request = OutboundRequest("GET", try #require(HTTPURL(server.address + "/a")))
            for _ in 0..<3 {
                #expect(try await client.send(request).text == "/a")
                while server.server.connectionCount > 0 { try await Task.sleep(for: .milliseconds(5)) }
            }
            #expect(server.counters["http_connections_total"] == 3)
        }
    }

    @Test("what arrived while the loop was busy is read before its deadline counts")
    func busyLoop() async throws {
        var limits = ServerLimits()
        limits.headTimeout = .milliseconds(300)
        try await EchoServer.run(limits) { server in
            let port = try #require(HTTPURL(server.address)?.port)
            let answers = try await Programs.onThread {
                func send(_ socket: Int32, _ text: String) {
                    let bytes = Array(text.utf8)
                    _ = Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL))
                }
                // More than there are loops, so that one of them shares the busy one.
                let sockets = try (0..<9).map { _ in try LoopbackSocket.connect(port: port) }
                defer { for socket in sockets { close(socket) } }
                send(sockets[0], "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
                usleep(100_000)
                for socket in sockets.dropFirst() { send(socket, "GET / HTTP/1.1\r\nHost: a\r\n\r\n") }
                return sockets.dropFirst().map { socket in
                    var buffer = [UInt8](repeating: 0, count: 256)
                    let count = read(socket, &buffer, buffer.count)
                    return String(decoding: buffer.prefix(max(0, count)).prefix { $0 != 0x0D }, as: UTF8.self)
                }
            }
            #expect(answers == Array(repeating: "HTTP/1.1 200 OK", count: 8))
        }
    }

    @Test("a server that stopped does not listen on through a child that is being started")
    func inheritedSocket() async throws {
        var held: Int32 = -1
        var port = 0
        try await EchoServer.run { server in
            port = try #require(HTTPURL(server.address)?.port)
            // Such a child holds every descriptor until it runs its program.
            let listening = try #require(
                (Int32(0)..<20_000).first { descriptor in
                    var isListening: Int32 = 0
                    var size = socklen_t(MemoryLayout<Int32>.size)
                    return getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &size) == 0
                        && isListening == 1 && SocketAddress.localPort(of: descriptor) == port
                }
            )
            held = dup(listening)
        }
        defer { close(held) }
        let again = HTTPServer(
            log: Log("test", to: .inMemory()),
            counters: Counters(),
            httpDate: { "" }
        ) { _ in HTTPResponse(200) }
        #expect(try again.start(host: "127.0.0.1", port: port) == port)
        await again.drain(within: .zero)
    }

    @Test("a draining server answers what it accepted and then refuses")
    func draining() async throws {
        try await EchoServer.run { server in
            async let answers = withThrowingTaskGroup(of: String.self, returning: Int.self) { group in
                for index in 0..<50 {
                    group.addTask { try await server.raw("GET /\(index) HTTP/1.1\r\nHost: a\r\n\r\n") }
                }
                var answered = 0
                while let answer = try? await group.next() {
                    if answer.hasPrefix("HTTP/1.1 200") { answered += 1 }
                }
                return answered
            }
            while server.counters["http_connections_total"] < 50 { await Task.yield() }
            await server.server.drain(within: .seconds(5))
            let answered = await answers
            #expect(answered == 50)
            #expect(server.server.connectionCount == 0)
        }
    }
}

import Foundation
import Glibc
import HTTPMessages
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import TidingsConformance

/// Uses up every descriptor of a server process: 20,000 is what a process may have here.
enum DescriptorTest {
    private static let get = Array("GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n".utf8)

    /// Connections of one helper, which holds each open after an answer on it. Ends with its standard input.
    static func dial(port: Int, count: Int) throws {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        var open: [Int32] = []
        var answered = 0
        for _ in 0..<count {
            guard let descriptor = try? LoopbackSocket.connect(port: port) else { break }
            var wait = timeval(tv_sec: 2, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
            open.append(descriptor)
            _ = Glibc.send(descriptor, get, get.count, Int32(MSG_NOSIGNAL))
            var buffer = [UInt8](repeating: 0, count: 1024)
            guard read(descriptor, &buffer, buffer.count) > 0 else { break }
            answered += 1
        }
        Console.print("\(answered)")
        // Until it is ended.
        while true { pause() }
    }

    /// - Returns: How many statements did not hold.
    static func run(limit: Int, folder: String) async throws -> Int {
        let server = try Programs.start(
            "tidings",
            ["serve", "--dev", "--state", folder + "/s"]
                + ["backend", "hub", "gateway"].flatMap { ["--\($0)-address", "127.0.0.1:0"] },
            descriptorCountMax: limit
        )
        let ready = try JSONValue(parsing: Array(try await server.nextLine().utf8))
        let urls = ["backend", "hub", "gateway"].compactMap { ready[$0]?.stringValue.flatMap { HTTPURL($0) } }
        let first = HTTPClient()
        func health() async throws -> Int {
            guard let url = HTTPURL("http://127.0.0.1:\(urls[0].port)/-/health") else { return 0 }
            return try await first.send(OutboundRequest("GET", url)).status.code
        }
        var failures = 0
        func expect(_ holds: Bool, _ text: String) {
            Console.print("\(holds ? "ok    " : "FAILED") \(text)")
            if !holds { failures += 1 }
        }
        expect(try await health() == 200, "a client is connected")
        // No helper may have more descriptors than the server, and no listener takes more than 19,000 connections.
        var helpers: [Programs.Running] = []
        var answered = 0
        for port in [urls[1].port, urls[2].port, urls[1].port] {
            let helper = try Programs.start(
                "tidings-soak-test",
                ["--dial", "\(port)", "--count", "\(limit * 45 / 100)"]
            )
            helpers.append(helper)
            answered += Int(try await helper.nextLine()) ?? 0
            Console.print("       \(answered) connections have an answer")
        }
        let log = try server.errorText().split(separator: "\n")
        expect(
            answered < limit && answered > limit * 95 / 100,
            "\(answered) of \(limit) descriptors were connections of clients"
        )
        expect(
            log.contains { $0.contains("accepting_paused") && $0.contains("too many open files") },
            "the log says so: too many open files"
        )
        expect(try await health() == 200, "the client that was connected before goes on")
        for helper in helpers { helper.send(SIGKILL) }
        for helper in helpers { _ = try await helper.end() }
        let late = HTTPClient()
        var status = 0
        let deadline = ContinuousClock.now + .seconds(30)
        while status != 200, ContinuousClock.now < deadline {
            guard let url = HTTPURL("http://127.0.0.1:\(urls[1].port)/-/health") else { break }
            status = (try? await late.send(OutboundRequest("GET", url)).status.code) ?? 0
        }
        expect(status == 200, "a new client is taken once there is room")
        server.send(SIGTERM)
        let (code, errors) = try await server.end()
        expect(
            code == 0 && errors.contains("accepting_resumed"),
            "the server ends by itself, and its log says that accepting resumed"
        )
        return failures
    }
}

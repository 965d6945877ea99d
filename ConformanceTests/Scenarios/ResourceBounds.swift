import Foundation
import Glibc
import HTTPMessages
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import TidingsConformance
import TidingsModels
import Testing

/// What a peer can use up: counted on services that are processes of their own.
@Suite("Bounds", .serialized, .timeLimit(.minutes(5)))
struct ResourceBounds {
    private func metric(_ name: String, of url: String) async throws -> Double {
        let text = try await HTTPClient().send(
            OutboundRequest("GET", try #require(HTTPURL(url + "/-/metrics")))
        ).text
        let line = try #require(
            text.split(separator: "\n").first { $0.hasPrefix("tidings_\(name) ") },
            "\(name)"
        )
        return try #require(line.split(separator: " ").last.flatMap { Double(String($0)) })
    }

    /// A plain connection that nobody reads from unless asked.
    private final class Peer: Sendable {
        let descriptor: Int32

        init(_ port: Int) throws {
            descriptor = try LoopbackSocket.connect(port: port, readsLittle: true)
            var wait = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &wait, socklen_t(MemoryLayout<timeval>.size))
        }

        deinit { close(descriptor) }

        /// Sends what the kernel takes; true when it took everything.
        @discardableResult
        func send(_ text: String, waits: Bool = true) -> Bool { send(Array(text.utf8), waits: waits) }

        @discardableResult
        func send(_ bytes: [UInt8], waits: Bool = true) -> Bool {
            let flags = Int32(MSG_NOSIGNAL) | (waits ? 0 : Int32(MSG_DONTWAIT))
            return Glibc.send(descriptor, bytes, bytes.count, flags) == bytes.count
        }

        /// The first line of an answer; empty when none comes.
        func firstLine() async throws -> String {
            // Not on a thread of the shared pool, of which there are two on two cores.
            try await Programs.onThread { [descriptor] in
                var buffer = [UInt8](repeating: 0, count: 4096)
                let count = read(descriptor, &buffer, buffer.count)
                guard count > 0 else { return "" }
                return String(decoding: buffer[..<count].prefix { $0 != 0x0D }, as: UTF8.self)
            }
        }
    }

    private let get = "GET /-/health HTTP/1.1\r\nHost: a\r\n\r\n"

    @Test("no descriptor left: who is connected goes on, one clear line in the log, and accepting resumes")
    func descriptors() async throws {
        try await ScratchFolder.run { folder in
            let gateway = try Programs.start(
                "tidings",
                [
                    "serve", "--services", "gateway", "--state", folder + "/g", "--gateway-address",
                    "127.0.0.1:0",
                ],
                descriptorCountMax: 100
            )
            let ready = try JSONValue(parsing: Array(try await gateway.nextLine().utf8))
            let url = try #require(HTTPURL(ready["gateway"]?.stringValue ?? ""))
            let first = try Peer(url.port)
            first.send(get)
            #expect(try await first.firstLine() == "HTTP/1.1 200 OK")
            // The kernel takes them all; the service has no descriptor for the last ones.
            var crowd = try (0..<150).map { _ in try Peer(url.port) }
            while !(try gateway.errorText().contains("accepting_paused")) {
                try await Task.sleep(for: .milliseconds(10))
            }
            first.send(get)
            #expect(try await first.firstLine() == "HTTP/1.1 200 OK")
            crowd.removeAll()
            let late = try Peer(url.port)
            late.send(get)
            #expect(try await late.firstLine() == "HTTP/1.1 200 OK")
            #expect(try await metric("http_accept_pauses_total", of: url.origin) >= 1)
            gateway.send(SIGTERM)
            let (status, errors) = try await gateway.end()
            #expect(status == 0)
            let lines = errors.split(separator: "\n")
            #expect(lines.count(where: { $0.contains("accepting_paused") }) >= 1)
            let paused = try #require(lines.first { $0.contains("accepting_paused") })
            #expect(
                paused.contains("too many open files") && paused.contains("\"level\":\"error\""),
                "\(paused)"
            )
            #expect(lines.contains { $0.contains("accepting_resumed") })
        }
    }

    @Test(
        "readers that never read: what waits for each stays below its cap, and memory below cap times readers plus 16 MiB"
    )
    func slowReaders() async throws {
        let readerCount = 40
        try await ScratchFolder.run { folder in
            let services = try ServiceProcesses(folder: folder)
            try await services.start()
            let hub = try await services.hubClient()
            let url = await services.gatewayURL
            let gateway = try #require(HTTPURL(url))
            // One that reads, and those that will not.
            let reader = RawDevice(0, .apns, gateway: gateway)
            reader.connect()
            try await TemplateTargets.register(
                await reader.handle(),
                reader.platform,
                tags: ["all"],
                at: hub
            )
            var mute: [MuteDevice] = []
            for index in 1...readerCount {
                let device = RawDevice(index, .apns, gateway: gateway)
                device.connect()
                try await TemplateTargets.register(
                    await device.handle(),
                    device.platform,
                    tags: ["all"],
                    at: hub
                )
                await device.disconnect()
                mute.append(MuteDevice(uaid: try #require(device.uaid), gateway: gateway))
            }
            for device in mute { try device.keepConnected() }
            while try await metric("gateway_devices_connected", of: url) < Double(readerCount + 1) {
                try await Task.sleep(for: .milliseconds(10))
            }
            // Requests without end on one connection each, whose answers nobody reads.
            let before = try await metric("process_resident_bytes", of: url)
            let peers = try (0..<readerCount).map { _ in try Peer(gateway.port) }
            let many = String(repeating: "GET /-/metrics HTTP/1.1\r\nHost: a\r\n\r\n", count: 200)
            for _ in 0..<20 { for peer in peers { peer.send(many, waits: false) } }

            let text = String(repeating: "x", count: 3000)
            // A few at a time: pushes in flight have memory of their own, which is not what is measured here.
            for group in 0..<11 {
                var ids: [NotificationID] = []
                for index in 0..<10 {
                    let text = "{\"messageParam\":\"\(group * 10 + index) \(text)\"}"
                    ids.append(try #require(try await hub.send(.template(text), tags: "all")))
                }
                for id in ids {
                    let details = try await hub.finalDetails(id, within: .seconds(120))
                    #expect(details.count(.success) == readerCount + 1)
                }
            }
            await reader.received(110)
            let peak = try await metric("http_queued_bytes_peak{service=\"gateway\"}", of: url)
            let after = try await metric("process_resident_bytes", of: url)
            let cap = 256.0 * 1024
            // The last piece that is queued may reach beyond the cap by itself.
            #expect(peak <= cap + 64 * 1024, "\(peak) bytes were queued for one reader")
            // A sanitizer keeps memory of its own for each byte.
            let isSanitized = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
            let isBounded = after - before <= 2 * Double(readerCount) * cap + 16 * 1024 * 1024
            #expect(isBounded || isSanitized, "\(before) then \(after)")
            await reader.disconnect()
            withExtendedLifetime(peers) {}
            withExtendedLifetime(mute) {}
            await services.stop()
        }
    }

    @Test(
        "HTTP/2 readers that open every window and never read: what waits for each stays below its cap, and others are served"
    )
    func slowHTTP2Readers() async throws {
        let readerCount = 20
        try await ScratchFolder.run { folder in
            let services = try ServiceProcesses(folder: folder)
            try await services.start()
            let url = await services.gatewayURL
            let gateway = try #require(HTTPURL(url))
            let before = try await metric("process_resident_bytes", of: url)
            let served = try await metric("http_requests_total", of: url)
            let peers = try (0..<readerCount).map { _ in try Peer(gateway.port) }
            for peer in peers {
                peer.send(HTTP2Flood.openWindows)
                // As many as may be open at a time, each with an answer of some 10 KiB.
                for stream in 0..<UInt32(100) {
                    peer.send(HTTP2Flood.get("/-/metrics", stream: stream * 2 + 1))
                }
            }
            while try await metric("http_requests_total", of: url) < served + Double(readerCount * 100) {
                try await Task.sleep(for: .milliseconds(10))
            }
            let peak = try await metric("http_queued_bytes_peak{service=\"gateway\"}", of: url)
            let after = try await metric("process_resident_bytes", of: url)
            let cap = 256.0 * 1024
            #expect(peak > 0 && peak <= cap + 64 * 1024, "\(peak) bytes were queued for one reader")
            let isSanitized = dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
            // A stream keeps its own answer until the connection takes it.
            let answers = Double(readerCount * 100) * 32 * 1024
            let isBounded = after - before <= Double(readerCount) * cap + answers + 16 * 1024 * 1024
            #expect(isBounded || isSanitized, "\(before) then \(after)")
            let other = try Peer(gateway.port)
            other.send(get)
            #expect(try await other.firstLine() == "HTTP/1.1 200 OK")
            withExtendedLifetime(peers) {}
            await services.stop()
        }
    }
}

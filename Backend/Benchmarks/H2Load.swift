import Foundation
import ProcessLifecycle

/// h2load: so many requests over HTTP/2 and TLS from one thread.
struct H2Load {
    /// A file of URLs, which each connection takes in turn.
    let addresses: String
    let headers: [(String, String)]
    /// A file: every request is a POST of it.
    let body: String
    let connectionCount: Int
    let streamCount: Int

    /// - Parameters:
    ///   - folder: Where its files go.
    init(
        _ addresses: [String],
        headers: [(String, String)],
        body: [UInt8],
        connections: Int,
        streams: Int,
        folder: String,
        name: String = "h2load"
    ) throws {
        self.addresses = "\(folder)/\(name)-addresses"
        self.body = "\(folder)/\(name)-body"
        self.headers = headers
        connectionCount = connections
        streamCount = streams
        try Files.replace(self.addresses, with: Array(addresses.joined(separator: "\n").utf8))
        try Files.replace(self.body, with: body)
    }

    /// Sends `count` requests, whose answers must all be 2xx, and tells h2load's own CPU time, start and handshakes included.
    @discardableResult
    func run(_ count: Int, on core: MeasuredProcess.Core) throws -> Double {
        var arguments = [
            "-t", "1", "-c", String(connectionCount), "-m", String(streamCount), "-n", String(count),
        ]
        arguments += ["-i", addresses, "-d", body] + headers.flatMap { ["-H", "\($0.0): \($0.1)"] }
        let program = try Programs.installed("h2load")
        let before = CPUTime.ofEndedChildren
        let report = try MeasuredProcess(program, arguments, on: core).result()
        let cpuSeconds = CPUTime.ofEndedChildren - before
        guard report.contains(", \(count) succeeded, 0 failed, 0 errored, 0 timeout"),
            report.contains("status codes: \(count) 2xx, 0 3xx, 0 4xx, 0 5xx")
        else { throw BenchmarkError("not every request was answered well:\n\(report)") }
        return cpuSeconds
    }
}

import Foundation
import ProcessLifecycle

/// What a server did under wrk.
struct Load: CustomStringConvertible {
    let requestCount: Int
    let cpuSeconds: Double
    let secondCount: Int

    var microsecondsPerRequest: Double { cpuSeconds * 1e6 / Double(requestCount) }
    var requestsPerSecond: Double { Double(requestCount) / Double(secondCount) }
    var description: String { "\(decimal(microsecondsPerRequest, 2)) us x \(requestCount)" }

    /// Loads a server from one thread. Every answer must have a status below 400.
    ///
    /// - Parameter script: wrk's Lua, when the requests are more than one GET.
    static func run(
        _ server: MeasuredProcess,
        connections: Int,
        seconds: Int,
        _ url: String,
        headers: [String] = [],
        script: String? = nil
    ) throws -> Load {
        var arguments = ["-t1", "-c\(connections)", "-d\(seconds)s", "--timeout", "10s"]
        arguments += headers.flatMap { ["-H", $0] }
        if let script { arguments += ["-s", script] }
        let before = try server.cpuSeconds
        let wrk = try MeasuredProcess(Programs.installed("wrk"), arguments + [url], on: .load)
        let report = try wrk.result()
        let cpuSeconds = try server.cpuSeconds - before
        guard !report.contains("Non-2xx"), !report.contains("Socket errors") else {
            throw BenchmarkError("not every request was answered well:\n\(report)")
        }
        // "  123456 requests in 3.00s, 45.6MB read"
        let words = report.split(whereSeparator: \.isWhitespace)
        guard let index = words.firstIndex(of: "requests"), index > 0,
            let requestCount = Int(words[index - 1]),
            requestCount > 0
        else { throw BenchmarkError("wrk's report is not as expected:\n\(report)") }
        return Load(requestCount: requestCount, cpuSeconds: cpuSeconds, secondCount: seconds)
    }
}

import ProcessLifecycle

/// CPU time of the server per `GET /-/health` over kept connections, against nginx's for a constant answer. Rounds of both
/// alternate, so that a disturbed machine disturbs both; the CPU time is what to compare, the rate depends on the neighbours.
struct HealthBenchmark {
    let roundCount: Int
    let secondCount: Int
    private let connectionCount = 32

    private struct Round {
        var requestCount: Int
        var cpuSeconds: Double
        var microsecondsPerRequest: Double { cpuSeconds * 1e6 / Double(requestCount) }
    }

    func run() async throws {
        let tidings = try TidingsProcess()
        defer { tidings.stop() }
        let nginx = try await NginxProcess(connectionCountMax: 1024, authorityFolder: tidings.state + "/ca")
        defer { nginx.stop() }

        Console.print("server CPU per GET /-/health, HTTP/1.1 over \(connectionCount) kept connections")
        var ratios: [Double] = []
        for number in 1...roundCount {
            let theirs = try measure(nginx.process, "http://127.0.0.1:\(nginx.plain)/-/health")
            let ours = try measure(tidings.process, "http://\(tidings.hub)/-/health")
            let ratio = ours.microsecondsPerRequest / theirs.microsecondsPerRequest
            ratios.append(ratio)
            Console.print(
                "  round \(number)  nginx \(text(theirs))  tidings \(text(ours))  ratio \(decimal(ratio, 2))"
            )
        }
        Console.print("  median ratio tidings/nginx \(decimal(ratios.sorted()[ratios.count / 2], 2))")
    }

    private func text(_ round: Round) -> String {
        "\(decimal(round.microsecondsPerRequest, 2)) us x \(round.requestCount)"
    }

    private func measure(_ server: MeasuredProcess, _ url: String) throws -> Round {
        let before = try server.cpuSeconds
        let load = try MeasuredProcess(
            Programs.installed("wrk"),
            ["-t1", "-c\(connectionCount)", "-d\(secondCount)s", url],
            on: .load
        )
        let report = try load.result()
        let cpuSeconds = try server.cpuSeconds - before
        guard !report.contains("Non-2xx"), !report.contains("Socket errors") else {
            throw BenchmarkError("not every request was answered with 200:\n\(report)")
        }
        // "  123456 requests in 3.00s, 45.6MB read"
        let words = report.split(whereSeparator: \.isWhitespace)
        guard let index = words.firstIndex(of: "requests"), index > 0,
            let requestCount = Int(words[index - 1]),
            requestCount > 0
        else { throw BenchmarkError("wrk's report is not as expected:\n\(report)") }
        return Round(requestCount: requestCount, cpuSeconds: cpuSeconds)
    }
}

/// With so many decimals.
func decimal(_ value: Double, _ count: Int) -> String {
    var scale = 1.0
    for _ in 0..<count { scale *= 10 }
    let whole = Int((value * scale).rounded())
    let digits = String(whole)
    let padded = String(repeating: "0", count: max(0, count + 1 - digits.count)) + digits
    return count == 0 ? padded : "\(padded.dropLast(count)).\(padded.suffix(count))"
}

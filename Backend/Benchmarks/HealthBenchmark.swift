import ProcessLifecycle

/// CPU time of the server per `GET /-/health` over kept connections, against nginx's for a constant answer. Rounds of both
/// alternate, so that a disturbed machine disturbs both; the CPU time is what to compare, the rate depends on the neighbours.
struct HealthBenchmark {
    let roundCount: Int
    let secondCount: Int
    private let connectionCount = 32

    func run() async throws {
        let tidings = try TidingsProcess()
        defer { tidings.stop() }
        let nginx = try await NginxProcess(connectionCountMax: 1024, authorityFolder: tidings.state + "/ca")
        defer { nginx.stop() }

        Console.print("server CPU per GET /-/health, HTTP/1.1 over \(connectionCount) kept connections")
        var ratios: [Double] = []
        for number in 1...roundCount {
            let theirs = try Load.run(
                nginx.process,
                connections: connectionCount,
                seconds: secondCount,
                "http://127.0.0.1:\(nginx.plain)/-/health"
            )
            let ours = try Load.run(
                tidings.process,
                connections: connectionCount,
                seconds: secondCount,
                "http://\(tidings.hub)/-/health"
            )
            let ratio = ours.microsecondsPerRequest / theirs.microsecondsPerRequest
            ratios.append(ratio)
            Console.print(
                "  round \(number)  nginx \(theirs)  tidings \(ours)  ratio \(decimal(ratio, 2))"
            )
        }
        Console.print("  median ratio tidings/nginx \(decimal(ratios.sorted()[ratios.count / 2], 2))")
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

import HubAPI
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// CPU time of the server per `GET /{hub}/installations/{id}` with a signature to check and a record to read, against nginx's for
/// a file of the same bytes.
struct ReadBenchmark {
    let roundCount: Int
    let secondCount: Int
    private let connectionCount = 32

    func run() async throws {
        let tidings = try TidingsProcess()
        defer { tidings.stop() }
        let installation = try Samples.installation()
        try await tidings.client().put(installation)
        let answer = InstallationJSON.value(installation).serialized()
        let nginx = try await NginxProcess(
            connectionCountMax: 1024,
            authorityFolder: tidings.state + "/ca",
            answer: answer
        )
        defer { nginx.stop() }
        let path = "/\(TidingsProcess.hubName)/installations/\(installation.id)?api-version=2015-01"

        Console.print(
            "server CPU per GET of an installation (\(answer.count) bytes), HTTP/1.1 over \(connectionCount) kept connections"
        )
        var ratios: [Double] = []
        for number in 1...roundCount {
            let theirs = try Load.run(
                nginx.process,
                connections: connectionCount,
                seconds: secondCount,
                "http://127.0.0.1:\(nginx.plain)/answer.json"
            )
            let ours = try Load.run(
                tidings.process,
                connections: connectionCount,
                seconds: secondCount,
                "http://\(tidings.hub)\(path)",
                headers: ["Authorization: \(tidings.authorization())"]
            )
            let ratio = ours.microsecondsPerRequest / theirs.microsecondsPerRequest
            ratios.append(ratio)
            Console.print("  round \(number)  nginx \(theirs)  tidings \(ours)  ratio \(decimal(ratio, 2))")
        }
        Console.print("  median ratio tidings/nginx \(decimal(ratios.sorted()[ratios.count / 2], 2))")
    }
}

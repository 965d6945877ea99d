import Glibc
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsConformance
import TidingsModels

extension CrashTest {
    /// A daemon as a process of its own, killed in the middle of a burst: its inbox has every push once, and no push is printed
    /// twice. A printed line may be lost.
    mutating func daemonRound(_ number: Int, folder: String) async throws {
        let pushCount = 60
        let state = "\(folder)/victim-\(number)"
        let platform = TemplateTargets.platforms[number % 3]
        let arguments = [
            "run", "--state", state, "--gateway", await services.gatewayURL, "--platform", platform.appName,
        ]
        var process = try Programs.start("tidings-device", arguments)
        func control(_ words: [String]) async throws -> [JSONValue] {
            let output = try await Programs.run("tidings-device", words + ["--state", state], [:])
            return output.lines.compactMap { try? JSONValue(parsing: Array($0.utf8)) }
        }
        guard let handle = try await control(["status", "--wait"]).first?["handle"]?.stringValue else {
            throw WorldFailure("the daemon has no handle")
        }
        let tag = "victim-\(number)"
        try await TemplateTargets.register(handle, platform, tags: [tag], at: hubClient)
        var printed: [String: Int] = [:]
        func note(_ line: String) -> Bool {
            guard let event = try? JSONValue(parsing: Array(line.utf8)),
                let text = event["text"]?.stringValue,
                text.hasPrefix("push ")
            else { return false }
            printed[text, default: 0] += 1
            return true
        }
        let hub = hubClient
        async let sending: Void = {
            for index in 0..<pushCount {
                _ = try await hub.send(.template("{\"messageParam\":\"push \(index)\"}"), tags: tag)
            }
        }()
        let killAt = max(1, Int(Double(pushCount) * share()))
        while printed.count < killAt { _ = note(try await process.nextLine()) }
        process.send(SIGKILL)
        for line in process.unreadLines() { _ = note(line) }
        _ = try await process.end()
        process = try Programs.start("tidings-device", arguments)
        try await sending
        _ = try await control(["status", "--wait"])
        var texts: [String] = []
        let deadline = ContinuousClock.now + .seconds(60)
        while Set(texts).count < pushCount, ContinuousClock.now < deadline {
            texts = try await control(["inbox"]).compactMap { $0["text"]?.stringValue }
        }
        process.send(SIGTERM)
        let after = process.unreadLines()
        _ = try await process.end()
        for line in after { _ = note(line) }
        let lost = pushCount - Set(texts).count
        let twice = texts.count - Set(texts).count + printed.values.count { $0 > 1 }
        if lost > 0 || twice > 0 { failed() }
        Console.print(
            "\(lost == 0 && twice == 0 ? "ok    " : "FAILED") round \(number) daemon: killed at \(killAt * 100 / pushCount) %; lost \(lost), shown twice \(twice), lines \(printed.count) of \(pushCount)"
        )
    }
}

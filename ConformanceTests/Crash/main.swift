import Glibc
import ProcessLifecycle
import TidingsConformance

private let usage = """
    usage: tidings-crash-test [--targets N] [--daemons N] [--offline N] [--rounds N] [--seed N]

    Kills hub, gateway and daemon with SIGKILL in the middle of broadcasts, each --rounds times, on loopback, with new state.
    Exit code 0 only if nothing was lost, nothing was shown twice, and repeats were seen.
    """

private func run() async throws -> Int32 {
    let options = try OptionReader(
        Array(CommandLine.arguments.dropFirst()),
        known: ["targets", "daemons", "offline", "rounds", "seed", "help!"]
    )
    try options.expect(atMost: 0)
    if options.has("help") {
        Console.print(usage)
        return 0
    }
    var plan = CrashTest.Plan()
    if let count = try options.count("targets") { plan.targetCount = count }
    if let count = try options.count("daemons") { plan.daemonCount = count }
    if let count = try options.count("offline") { plan.offlineCount = count }
    if let count = try options.count("rounds") { plan.roundCount = count }
    if let seed = try options.count("seed") { plan.seed = UInt64(seed) }
    signal(SIGPIPE, SIG_IGN)
    let folder = try Files.makeScratchFolder("tidings-crash")
    defer { Files.removeTree(folder) }
    var test = try await CrashTest(plan, folder: folder)
    do {
        try await test.prepare()
        for number in 0..<plan.roundCount {
            try await test.round(number, .hub)
            try await test.round(number, .gateway)
            try await test.daemonRound(number, folder: folder)
        }
        try await test.end()
    } catch {
        await test.stop()
        throw error
    }
    await test.stop()
    Console.print(
        test.failureCount == 0 ? "nothing lost, nothing shown twice" : "\(test.failureCount) failures"
    )
    return test.failureCount == 0 ? 0 : 1
}

do { exit(try await run()) } catch {
    Console.error("tidings-crash-test: \(error)")
    exit(2)
}

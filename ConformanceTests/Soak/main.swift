import Glibc
import ProcessLifecycle
import TidingsConformance

private let usage = """
    usage: tidings-soak-test [--seconds N] [--devices N] [--sends N] [--registrations N] [--changes N] [--seed N] [--plot FILE]

           tidings-soak-test --descriptors N

           tidings-soak-test --faults N

    The third form sends N pushes through a gateway that fails on demand.

    The second form uses up the N descriptors of a server (up to what a process may have), and looks at who suffers.

    Sends, registrations, and devices that come and go, on loopback, with new state, for so long. Rates are per second. Exit code 0
    only if memory and descriptors stayed flat, every push arrived once, and no client saw an error.
    """

private func run() async throws -> Int32 {
    let options = try OptionReader(
        Array(CommandLine.arguments.dropFirst()),
        known: [
            "seconds", "devices", "sends", "registrations", "changes", "seed", "plot", "descriptors",
            "faults", "dial",
            "count", "help!",
        ]
    )
    try options.expect(atMost: 0)
    if options.has("help") {
        Console.print(usage)
        return 0
    }
    signal(SIGPIPE, SIG_IGN)
    if let port = try options.count("dial"), let count = try options.count("count") {
        try DescriptorTest.dial(port: port, count: count)
    }
    if let limit = try options.count("descriptors") {
        let folder = try Files.makeScratchFolder("tidings-descriptors")
        defer { Files.removeTree(folder) }
        return try await DescriptorTest.run(limit: limit, folder: folder) == 0 ? 0 : 1
    }
    if let count = try options.count("faults") {
        guard count % 1000 == 0 else { throw OptionError("--faults takes a multiple of 1000") }
        let folder = try Files.makeScratchFolder("tidings-faults")
        defer { Files.removeTree(folder) }
        return try await FaultTest(count: count, folder: folder).run() == 0 ? 0 : 1
    }
    var plan = SoakTest.Plan()
    if let count = try options.count("seconds") { plan.seconds = count }
    if let count = try options.count("devices") { plan.deviceCount = count }
    if let count = try options.count("sends") { plan.sendRate = count }
    if let count = try options.count("registrations") { plan.registrationRate = count }
    if let count = try options.count("changes") { plan.changeRate = count }
    if let count = try options.count("seed") { plan.seed = UInt64(count) }
    let folder = try Files.makeScratchFolder("tidings-soak")
    defer { Files.removeTree(folder) }
    let test = try await SoakTest(plan, folder: folder)
    let failureCount: Int
    do { failureCount = try await test.run(plot: options["plot"]) } catch {
        await test.stop()
        throw error
    }
    await test.stop()
    return failureCount == 0 ? 0 : 1
}

do { exit(try await run()) } catch {
    Console.error("tidings-soak-test: \(error)")
    exit(2)
}

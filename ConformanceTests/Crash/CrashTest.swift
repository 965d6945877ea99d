import HTTPMessages
import HubClient
import ProcessLifecycle
import TidingsConformance
import TidingsModels

/// Scenario 09: kill -9 in the middle of a broadcast, again and again. Nothing may be lost, and nothing shown twice.
struct CrashTest {
    struct Plan {
        var targetCount = 10_000
        var linkCount = 40
        var daemonCount = 100
        var offlineCount = 20
        var roundCount = 20
        var seed: UInt64 = 1
    }

    /// Who is killed.
    enum Victim: String { case hub, gateway }

    private static let patience = Duration.seconds(180)
    let plan: Plan
    let services: ServiceProcesses
    let tally = Tally()
    private let folder: String
    private var random: SeededRandom
    private var links: [Link] = []
    private var daemons: [Daemon] = []
    private var offline: [Daemon] = []
    private var hub: HubClient
    private(set) var failureCount = 0
    private var repeatedCount = 0
    private var total: Int { plan.targetCount + plan.daemonCount + plan.offlineCount }

    init(_ plan: Plan, folder: String) async throws {
        self.plan = plan
        self.folder = folder
        random = SeededRandom(state: plan.seed)
        services = try ServiceProcesses(folder: folder)
        try await services.start()
        hub = try await services.hubClient()
    }

    /// Makes the targets and registers them at the hub.
    mutating func prepare() async throws {
        guard let gateway = HTTPURL(await services.gatewayURL) else { throw WorldFailure("no gateway") }
        for index in 0..<plan.linkCount {
            let share =
                plan.targetCount / plan.linkCount + (index < plan.targetCount % plan.linkCount ? 1 : 0)
            links.append(Link(gateway, index: index, channelCount: share, tally: tally))
        }
        var handles: [(handle: String, platform: Platform)] = []
        for link in links { handles += await link.ready() }
        for index in 0..<plan.daemonCount + plan.offlineCount {
            let platform = TemplateTargets.platforms[index % 3]
            let daemon = Daemon("daemon-\(index)", platform, folder: folder, gateway: gateway, tally: tally)
            handles.append((try await daemon.start(), platform))
            if index < plan.daemonCount { daemons.append(daemon) } else { offline.append(daemon) }
        }
        let hub = hub
        let all = handles
        try await withThrowingTaskGroup(of: Void.self) { group in
            var next = 0
            while next < min(64, all.count) {
                let target = all[next]
                group.addTask {
                    try await TemplateTargets.register(target.handle, target.platform, tags: ["all"], at: hub)
                }
                next += 1
            }
            while try await group.next() != nil {
                guard next < all.count else { continue }
                let target = all[next]
                group.addTask {
                    try await TemplateTargets.register(target.handle, target.platform, tags: ["all"], at: hub)
                }
                next += 1
            }
        }
        Console.print(
            "\(total) targets on APNs, FCM and WNS: \(plan.targetCount) on \(plan.linkCount) links, \(plan.daemonCount) daemons that stay and \(plan.offlineCount) that are away; seed \(plan.seed)"
        )
    }

    /// One broadcast with a kill in its middle.
    mutating func round(_ number: Int, _ victim: Victim) async throws {
        let text = "round \(number) \(victim.rawValue)"
        let began = ContinuousClock.now
        for daemon in offline { await daemon.stop() }
        let linkRepeats = tally.repeats
        let before =
            victim == .gateway ? 0 : try await services.gatewayCounter("gateway_messages_repeated_total")
        guard
            let id = try await hub.send(
                .template("{\"messageParam\":\"\(text)\"}"),
                tags: "all"
            )
        else { throw WorldFailure("the hub told no notification id") }
        let online = total - plan.offlineCount
        let share = Double.random(in: 0.1...0.9, using: &random)
        _ = await tally.reaches(Int(Double(online) * share), text, within: Self.patience)
        let atKill = tally.received(text)
        switch victim {
        case .hub: try await services.crashHub()
        case .gateway: try await services.crashGateway()
        }
        for daemon in offline { try await daemon.start() }
        let details = try await finalDetails(id)
        _ = await tally.reaches(total, text, within: Self.patience)
        let after = try await services.gatewayCounter("gateway_messages_repeated_total")
        let repeats = after - before + tally.repeats - linkRepeats
        repeatedCount += repeats
        let lost = total - tally.received(text)
        let twice = tally.shownTwice(text)
        let isExhaustive = details.outcomes.values.reduce(0) { $0 + $1.values.reduce(0, +) } == total
        let isGood = lost == 0 && twice == 0 && isExhaustive && details.state == .completed
        if !isGood { failureCount += 1 }
        let success = details.count(.success)
        Console.print(
            "\(isGood ? "ok    " : "FAILED") \(text): killed at \(atKill * 100 / online) %; lost \(lost), shown twice \(twice), repeats dropped \(repeats); \(details.state.rawValue), \(success) of \(total) Success; \(Self.seconds(since: began)) s"
        )
        if success != total { Console.print("       outcomes: \(details.outcomes)") }
    }

    private static func seconds(since began: ContinuousClock.Instant) -> Double {
        Double((ContinuousClock.now - began) / .milliseconds(100)).rounded() / 10
    }

    private func finalDetails(_ id: NotificationID) async throws -> NotificationDetails {
        let deadline = ContinuousClock.now + Self.patience
        while true {
            // The hub may be on its way back.
            if let details = try? await hub.finalDetails(id, within: Self.patience), details.state.isFinal {
                return details
            }
            guard ContinuousClock.now < deadline else { throw WorldFailure("\(id) does not end") }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// A last push to everybody: whatever came twice has come before it.
    mutating func end() async throws {
        let text = "round last"
        _ = try await hub.send(.template("{\"messageParam\":\"\(text)\"}"), tags: "all")
        let isThere = await tally.reaches(total, text, within: Self.patience)
        let twice = tally.shownTwice()
        if !isThere || twice > 0 { failureCount += 1 }
        Console.print(
            "last push: \(tally.received(text)) of \(total); shown twice over all rounds \(twice); repeats dropped \(repeatedCount)"
        )
        if repeatedCount == 0 {
            failureCount += 1
            Console.print("FAILED no run had a repeat: the kills came too late to prove anything")
        }
    }

    func stop() async {
        for link in links { await link.stop() }
        for daemon in daemons + offline { await daemon.stop() }
        await services.stop()
    }

    var hubClient: HubClient { hub }
    mutating func failed() { failureCount += 1 }
    mutating func share() -> Double { Double.random(in: 0.1...0.9, using: &random) }
}

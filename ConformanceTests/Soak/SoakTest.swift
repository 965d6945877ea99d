import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import Synchronization
import TidingsConformance
import TidingsModels

/// Mixed load on hub and gateway, as processes of their own, for a long time: memory and descriptors stay where they are,
/// every push arrives once, and no error appears that the plan does not name.
final class SoakTest: Sendable {
    struct Plan {
        var seconds = 3600
        var deviceCount = 2000
        /// Of a hundred devices so many never read.
        var mutePercent = 1
        /// Per second; of a hundred, nine go to a group of a hundred devices and one to everybody.
        var sendRate = 50
        var registrationRate = 20
        /// Devices per second that come or go.
        var changeRate = 30
        var seed: UInt64 = 1
    }

    private static let sampleInterval = Duration.seconds(10)
    private static let groupCount = 20
    /// Sends whose outcome is not there yet; with more the load waits, so that it is what the machine bears.
    private static let openCountMax = 256

    let plan: Plan
    private let services: ServiceProcesses
    private let began = ContinuousClock.now
    private let hub: HubClient
    private let devices: [RawDevice]
    private let muteIDs: [(uaid: String, gateway: HTTPURL)]
    private let tally = SoakTally()
    /// Before the first device.
    private let idle: SoakSample
    private let isOver = Atomic<Bool>(false)

    init(_ plan: Plan, folder: String) async throws {
        self.plan = plan
        services = try ServiceProcesses(folder: folder)
        try await services.start()
        hub = try await services.hubClient()
        idle = try await Self.sample(services)
        guard let gateway = HTTPURL(await services.gatewayURL) else { throw WorldFailure("no gateway") }
        let hub = hub
        let muteCount = plan.deviceCount * plan.mutePercent / 100
        var made: [RawDevice] = []
        for index in 0..<plan.deviceCount {
            let device = RawDevice(index, gateway: gateway)
            device.connect()
            var tags = ["mute"]
            if index >= muteCount {
                tags = ["all", "user:\(index)", "group:\(index % Self.groupCount)"]
            }
            try await TemplateTargets.register(await device.handle(), device.platform, tags: tags, at: hub)
            made.append(device)
        }
        for device in made.prefix(muteCount) { await device.disconnect() }
        muteIDs = made.prefix(muteCount).compactMap { device in device.uaid.map { ($0, gateway) } }
        devices = Array(made.dropFirst(muteCount))
        Console.print(
            "\(plan.deviceCount) devices, \(muteCount) of them never read; \(plan.sendRate) sends, \(plan.registrationRate) registrations and \(plan.changeRate) arrivals or departures a second; \(plan.seconds) s"
        )
    }

    func stop() async {
        for device in devices { await device.disconnect() }
        await services.stop()
    }

    /// - Returns: How many checks failed.
    func run(plot: String?) async throws -> Int {
        let idle = idle
        var samples = [try await sample()]
        let end = ContinuousClock.now + .seconds(plan.seconds)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await self.paced(self.plan.sendRate, self.sendOne) }
            group.addTask { await self.paced(self.plan.registrationRate, self.registerOne) }
            group.addTask { await self.paced(self.plan.changeRate, self.changeOne) }
            group.addTask { try await self.keepMute() }
            group.addTask { await self.check() }
            var next = ContinuousClock.now + Self.sampleInterval
            while next < end {
                try await Task.sleep(until: next, clock: .continuous)
                next += Self.sampleInterval
                let sample = try await sample()
                samples.append(sample)
                if samples.count % 30 == 1 { printLine(sample) }
            }
            isOver.store(true, ordering: .releasing)
            try await group.waitForAll()
        }
        for device in devices { device.connect() }
        let isComplete = await arrived(within: .seconds(120))
        let last = try await sample()
        for device in devices { await device.disconnect() }
        let after = try await settled(idle)
        let logs = await services.stop()
        if let plot { try Files.replace(plot, with: Array(SoakPlot.svg(samples).utf8), mode: 0o644) }
        return try await judge(idle, samples, last, after, logs, isComplete: isComplete)
    }

    // MARK: Load

    /// Starts `body` so often, each as a task of its own; what is late is made up, with a bound on what is under way.
    private func paced(_ rate: Int, _ body: @escaping @Sendable (Int) async -> Void) async {
        guard rate > 0 else { return }
        let began = ContinuousClock.now
        let underWay = Count()
        await withDiscardingTaskGroup { group in
            var index = 0
            while !isOver.load(ordering: .acquiring) {
                let due = began + .milliseconds(index * 1000 / rate)
                try? await Task.sleep(until: due, clock: .continuous)
                // Slower than the plan: what the machine bears is less, and is told.
                guard underWay.value < 64, tally.openCount < Self.openCountMax else {
                    tally.count("late")
                    try? await Task.sleep(for: .milliseconds(10))
                    continue
                }
                let number = index
                index += 1
                underWay.add(1)
                group.addTask {
                    await body(number)
                    underWay.add(-1)
                }
            }
        }
    }

    private func random(_ number: Int, _ salt: UInt64, below count: Int) -> Int {
        var random = SeededRandom(state: plan.seed ^ salt << 48 ^ UInt64(number))
        return Int.random(in: 0..<count, using: &random)
    }

    /// A full mailbox is tried five times, a minute apart: 429 without Retry-After means so long at the platforms.
    private static let outcomeTimeout = Duration.seconds(330)

    private func sendOne(_ number: Int) async {
        let muteCount = muteIDs.count
        let tags: String
        switch number % 100 {
        case 0: tags = "all"
        case 1...9: tags = "group:\(random(number, 1, below: Self.groupCount))"
        case 10 where muteCount > 0: tags = "mute"
        default: tags = "user:\(muteCount + random(number, 2, below: devices.count))"
        }
        do {
            let notification = HubNotification.template("{\"messageParam\":\"\(number)\"}")
            guard let id = try await hub.send(notification, tags: tags) else { return tally.count("no id") }
            tally.sent(id, isMute: tags == "mute")
        } catch { tally.count("send: \(error)") }
    }

    /// A registration of a handle that nobody has: made, read, changed, read, deleted, gone.
    private func registerOne(_ number: Int) async {
        do {
            let digits = String(number, radix: 16)
            let handle = String(repeating: "0", count: 64 - digits.count) + digits
            let tag = try HubTag("extra:\(number % 1000)")
            let content = RegistrationContent(
                handle: try PlatformHandle(handle, platform: .apns),
                tags: [tag]
            )
            let made = try await hub.create(content)
            guard try await hub.registration(made.id)?.content.tags == [tag] else {
                return tally.count("a registration is not what was written")
            }
            try await hub.delete(made.id)
            guard try await hub.registration(made.id) == nil else {
                return tally.count("a registration is there after it was deleted")
            }
            tally.registered()
        } catch { tally.count("registration: \(error)") }
    }

    private func changeOne(_ number: Int) async {
        let device = devices[random(number, 3, below: devices.count)]
        if device.isOnline { await device.disconnect() } else { device.connect() }
    }

    private func keepMute() async throws {
        let devices = muteIDs.map { MuteDevice(uaid: $0.uaid, gateway: $0.gateway) }
        while !isOver.load(ordering: .acquiring) {
            for device in devices { try device.keepConnected() }
            try await Task.sleep(for: .seconds(1))
        }
        tally.muteConnects(devices.reduce(0) { $0 + $1.connectCount })
    }

    /// Asks for the outcome of each send.
    private func check() async {
        while true {
            switch tally.next(isLast: isOver.load(ordering: .acquiring)) {
            case .over: return
            // The load itself is paced: it tells nobody.
            case .later: try? await Task.sleep(for: .milliseconds(20))
            case .sent(let sent):
                do {
                    tally.ended(sent, try await hub.finalDetails(sent.id, within: Self.outcomeTimeout))
                } catch { tally.count("details: \(error)") }
            }
        }
    }

    /// True once every push that the gateway took for a device that reads has arrived.
    private func arrived(within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while received < tally.successCount {
            guard ContinuousClock.now < deadline else { return false }
            try? await Task.sleep(for: .milliseconds(100))
        }
        return true
    }

    private var received: Int { devices.reduce(0) { $0 + $1.receivedCount } }

    // MARK: Figures

    private func sample() async throws -> SoakSample {
        var sample = try await Self.sample(services)
        sample.seconds = (ContinuousClock.now - began) / .seconds(1)
        sample.onlineCount = devices.count { $0.isOnline }
        sample.sentCount = tally.sentCount
        sample.receivedCount = received
        return sample
    }

    /// Once the devices are gone and idle connections have ended, which takes 75 s: the services hold what they held before, and
    /// a few connections to each other.
    private func settled(_ idle: SoakSample) async throws -> SoakSample {
        let deadline = ContinuousClock.now + .seconds(150)
        while true {
            let sample = try await sample()
            let extra = max(
                sample.gateway.descriptorCount - idle.gateway.descriptorCount,
                sample.hub.descriptorCount - idle.hub.descriptorCount
            )
            if extra < 20 || ContinuousClock.now > deadline { return sample }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private static func sample(_ services: ServiceProcesses) async throws -> SoakSample {
        guard let hub = await services.hub, let gateway = await services.gateway else {
            throw WorldFailure("a service is gone")
        }
        return SoakSample(
            hub: try ProcessFigures(of: hub.process),
            gateway: try ProcessFigures(of: gateway.process)
        )
    }

    private func printLine(_ sample: SoakSample) {
        func part(_ name: String, _ process: ProcessFigures) -> String {
            "\(name) \(process.residentByteCount >> 20) MiB, \(process.descriptorCount) descriptors, \(Int(process.cpuSeconds)) s CPU"
        }
        Console.print(
            "\(Int(sample.seconds)) s: \(part("hub", sample.hub)); \(part("gateway", sample.gateway)); \(sample.onlineCount) online; \(sample.sentCount) sends, \(sample.receivedCount) received"
        )
    }

    private func judge(
        _ idle: SoakSample,
        _ samples: [SoakSample],
        _ last: SoakSample,
        _ after: SoakSample,
        _ logs: [String],
        isComplete: Bool
    ) async throws -> Int {
        var failureCount = 0
        func expect(_ isTrue: Bool, _ text: String) {
            if !isTrue { failureCount += 1 }
            Console.print("\(isTrue ? "ok    " : "FAILED") \(text)")
        }
        printLine(last)
        let warm = samples.dropFirst(samples.count / 6)
        for (name, value) in [
            ("hub", { (sample: SoakSample) in sample.hub.residentByteCount }),
            ("gateway", { (sample: SoakSample) in sample.gateway.residentByteCount }),
        ] {
            let early = median(warm.prefix(max(1, warm.count / 5)).map(value))
            let late = median(warm.suffix(max(1, warm.count / 5)).map(value))
            expect(
                late <= early + early / 10 + (8 << 20),
                "\(name): resident memory \(early >> 20) MiB in the first fifth after warming up, \(late >> 20) MiB in the last"
            )
        }
        for (name, before, then) in [
            ("hub", idle.hub, after.hub), ("gateway", idle.gateway, after.gateway),
        ] {
            expect(
                then.descriptorCount < before.descriptorCount + 20,
                "\(name): \(before.descriptorCount) descriptors before the first device, \(then.descriptorCount) after the last"
            )
        }
        let unplanned = Self.unplanned(logs)
        for (event, count) in unplanned.sorted(by: { $0.value > $1.value }).prefix(20) {
            Console.print("       \(count) x \(event)")
        }
        expect(
            unplanned.allSatisfy { $0.key.hasPrefix("target_failed") },
            "the services' logs name nothing but pushes that found a full mailbox"
        )
        let success = tally.successCount
        let repeats = devices.reduce(0) { $0 + $1.repeatCount }
        expect(
            isComplete && received == success,
            "\(success) pushes taken, \(received) received by devices that read, each once (\(repeats) repeats dropped)"
        )
        Console.print("outcomes: \(tally.outcomes)")
        Console.print(
            "\(tally.sentCount) sends, \(tally.registrationCount) registrations made, read, deleted; the mute devices dialled \(tally.muteConnectCount) times"
        )
        let problems = tally.problems
        for (problem, count) in problems.sorted(by: { $0.value > $1.value }).prefix(20) {
            Console.print("       \(count) x \(problem)")
        }
        expect(
            problems.allSatisfy { $0.key == "late" },
            "no error of a client; the load was behind its plan \(problems["late"] ?? 0) times"
        )
        return failureCount
    }

    /// The warnings and errors of the services' logs, by event. Pushes to full mailboxes are in the plan.
    private static func unplanned(_ logs: [String]) -> [String: Int] {
        var counts: [String: Int] = [:]
        for log in logs {
            for line in log.utf8.split(separator: UInt8(ascii: "\n")) {
                guard let entry = try? JSONValue(parsing: Array(line)) else {
                    counts[String(Substring(line)), default: 0] += 1
                    continue
                }
                let level = entry["level"]?.stringValue
                guard level == "warning" || level == "error" else { continue }
                let event = [entry["event"], entry["outcome"], entry["reason"]].compactMap { $0?.stringValue }
                    .joined(separator: " ")
                counts[event, default: 0] += 1
            }
        }
        return counts
    }

    private func median(_ values: [Int]) -> Int { values.sorted()[values.count / 2] }
}

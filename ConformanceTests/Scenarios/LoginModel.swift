import HubClient
import Synchronization
import TidingsConformance
import TidingsModels
import Testing

/// Users come and go on several devices while others notify them.
@Suite("Logins against a model")
struct LoginModel {
    /// Who may have been logged in on a device, by logical time.
    private struct Period: Sendable {
        var user: String?
        var from: Int
        var until = Int.max
    }

    private static let users = ["alice", "bob", "carol"]

    @Test(
        "random logins and logouts while everybody is notified: a push is shown only where its user was, once, and in the end exactly there",
        arguments: [UInt64(1), 2]
    )
    func model(seed: UInt64) async throws {
        try await World.run { world in
            let ticks = LogicalClock()
            var devices: [WorldDevice] = []
            for index in 0..<4 {
                devices.append(try await world.device("d\(index)", TemplateTargets.platforms[index % 3]))
            }
            var periods: [[Period]] = []
            let isOver = Atomic<Bool>(false)
            // Each text names its user and when it was sent.
            async let sending: [String: Int] = {
                var random = SeededRandom(state: seed)
                var sent: [String: Int] = [:]
                var number = 0
                while !isOver.load(ordering: .acquiring) {
                    number += 1
                    let user = Self.users[Int.random(in: 0..<3, using: &random)]
                    let text = "for \(user) #\(number)"
                    sent[text] = ticks.next()
                    for platform in ["apns", "fcm", "wns"] {
                        _ = try? await world.app("eve").notify(platform: platform, user: user, text: text)
                    }
                }
                return sent
            }()
            try await withThrowingTaskGroup(of: (Int, [Period]).self) { group in
                for (index, device) in devices.enumerated() {
                    group.addTask {
                        var random = SeededRandom(state: seed &* 31 &+ UInt64(index))
                        var periods = [Period(user: nil, from: 0)]
                        for _ in 0..<12 {
                            let user =
                                Bool.random(using: &random) || periods.last?.user == nil
                                ? Self.users[Int.random(in: 0..<3, using: &random)] : nil
                            let began = ticks.next()
                            if let user {
                                try await device.login(user)
                            } else {
                                try await device.daemon.logout()
                            }
                            periods[periods.count - 1].until = ticks.next()
                            periods.append(Period(user: user, from: began))
                        }
                        return (index, periods)
                    }
                }
                periods = try await group.reduce(into: Array(repeating: [], count: devices.count)) {
                    $0[$1.0] = $1.1
                }
            }
            isOver.store(true, ordering: .releasing)
            let sent = await sending
            #expect(sent.count > 3)

            // Quiet now: the hub has exactly the registrations of who is logged in, and a last push shows it.
            let final = periods.map { $0.last?.user ?? nil }
            for user in Self.users {
                let registrations = try await world.hub().registrations(tag: try HubTag.username(user))
                var handles: [String] = []
                for (index, device) in devices.enumerated() where final[index] == user {
                    handles.append(try await device.handle().lowercased())
                }
                #expect(
                    registrations.map { $0.content.handle.text.lowercased() }.sorted() == handles.sorted(),
                    "\(user)"
                )
            }
            for user in Self.users {
                for platform in ["apns", "fcm", "wns"] {
                    _ = try await world.app("eve").notify(
                        platform: platform,
                        user: user,
                        text: "last for \(user)"
                    )
                }
            }
            for (index, device) in devices.enumerated() {
                guard let user = final[index] else { continue }
                var text = ""
                while !text.hasSuffix("last for \(user)") { text = try await device.nextText() }
            }
            for (index, device) in devices.enumerated() {
                var shown: [String: Int] = [:]
                for event in try await device.events.all {
                    guard event.name == "notification", let text = event["text"],
                        let start = text.firstRange(of: "for ")
                    else { continue }
                    shown[String(text[start.lowerBound...]), default: 0] += 1
                }
                for (text, count) in shown {
                    #expect(count == 1, "d\(index) showed '\(text)' \(count) times")
                    let user = text.dropFirst(4).prefix { $0 != " " }
                    if let moment = sent[text] {
                        // Its user was there when it was sent, or came later while it was under way.
                        #expect(
                            periods[index].contains { $0.user == String(user) && $0.until >= moment },
                            "d\(index): '\(text)'"
                        )
                    } else {
                        #expect(final[index] == String(user), "d\(index): '\(text)'")
                    }
                }
            }
        }
    }
}

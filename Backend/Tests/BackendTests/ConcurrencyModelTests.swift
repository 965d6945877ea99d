import HubCore
import ProcessLifecycle
import Synchronization
import TidingsConformance
import TidingsModels
import Testing

/// Many write, read and send at once; afterwards each send is compared with what a simple model allows.
@Suite("Concurrency against a model")
struct ConcurrencyModelTests {
    /// A registration as one step of its owner left it: nil is gone. The step began at `from`, and the next one ended at `until`;
    /// in between somebody else may have seen it so.
    private struct State: Sendable {
        var from: Int
        var until = Int.max
        var content: (handle: String, tags: Set<HubTag>)?
    }

    private struct Send: Sendable {
        let number: Int
        let expression: TagExpression
        let from: Int
        let until: Int
    }

    /// Remembers which handles each send reached. The number of a send is in its payload.
    private final class Recorder: PlatformSender {
        private let handles = Mutex<[Int: [String]]>([:])

        func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer] {
            let digits = String(decoding: payload.body, as: UTF8.self).filter(\.isNumber)
            handles.withLock { $0[Int(digits) ?? -1, default: []] += targets.map(\.handle.text) }
            await Task.yield()
            return targets.map { _ in .accepted }
        }

        func reached(_ send: Int) -> [String] { handles.withLock { $0[send] ?? [] } }
    }

    private static let tags = ["a", "b", "c", "d"]

    /// One registration's owner: its steps one after another, each answered as the model says.
    private func own(_ index: Int, _ hub: Hub, _ ticks: LogicalClock, seed: UInt64) async throws -> [State] {
        var random = SeededRandom(state: seed &+ UInt64(index) &* 7919)
        var states = [State(from: 0, content: nil)]
        var current: Registration?
        func content(_ step: Int) throws -> RegistrationContent {
            let tags = Self.tags.filter { _ in Bool.random(using: &random) }
            let digits = String(index * 1000 + step, radix: 16)
            let handle = String(repeating: "0", count: 8 - digits.count) + digits
            return RegistrationContent(
                handle: try PlatformHandle(handle, platform: .apns),
                tags: try tags.map { try HubTag($0) }
            )
        }
        for step in 0..<60 {
            let began = ticks.next()
            var made: State?
            switch Int.random(in: 0..<6, using: &random) {
            case 0...2:
                let content = try content(step)
                if let known = current {
                    let condition: EntityCondition = Bool.random(using: &random) ? .etag(known.etag) : .none
                    current = try await hub.put(known.id.text, bodyID: nil, content, condition, by: .manager)
                } else {
                    current = try await hub.create(content, by: .manager)
                }
                #expect(current?.content == content)
                made = State(from: began, content: (content.handle.text, Set(content.tags)))
            case 3:
                guard let known = current else { continue }
                let stale = try content(step)
                let error = await #expect(throws: HubError.self) {
                    try await hub.put(known.id.text, bodyID: nil, stale, .etag(known.etag + 7), by: .manager)
                }
                #expect(error?.code == .preconditionFailed)
            case 4:
                guard let known = current else { continue }
                try await hub.delete(known.id.text, .none, by: .manager)
                current = nil
                made = State(from: began, content: nil)
            default:
                guard let known = current else { continue }
                #expect(try await hub.registration(known.id.text) == known)
            }
            if let made {
                states[states.count - 1].until = ticks.next()
                states.append(made)
            }
        }
        return states
    }

    private func send(
        _ task: Int,
        _ test: TestHub,
        _ ticks: LogicalClock,
        seed: UInt64
    ) async throws -> [Send] {
        var random = SeededRandom(state: seed &+ UInt64(task) &* 104_729)
        let expressions = [
            "a", "b || c", "a && !b", "!a", "(a || b) && (c || d)", "a && b && c && d", "!(c || d)",
        ]
        var sends: [Send] = []
        for index in 0..<40 {
            let number = task * 1000 + index
            let text = expressions[Int.random(in: 0..<expressions.count, using: &random)]
            let from = ticks.next()
            let id = try await test.hub.send(
                .native(.apns, "{\"aps\":{\"alert\":\"\(number)\"}}"),
                tags: text
            )
            let details = try await test.outcome(id)
            let total = details.outcomes.values.reduce(0) { $0 + $1.values.reduce(0, +) }
            #expect(total == details.targetCount, "\(details)")
            sends.append(
                Send(
                    number: number,
                    expression: try TagExpression(parsing: text),
                    from: from,
                    until: ticks.next()
                )
            )
        }
        return sends
    }

    @Test(
        "random registrations, reads and sends side by side: whoever matched throughout is reached once, whoever never matched is not, and no old handle",
        arguments: [UInt64(1), 2, 3]
    )
    func model(seed: UInt64) async throws {
        let folder = try Files.makeScratchFolder("tidings-model")
        defer { Files.removeTree(folder) }
        let recorder = Recorder()
        let test = try await TestHub.open(folder, [.apns: recorder])
        let ticks = LogicalClock()
        var histories: [[State]] = []
        var sends: [Send] = []
        try await withThrowingTaskGroup(of: ([State], [Send]).self) { group in
            for index in 0..<40 {
                group.addTask { (try await self.own(index, test.hub, ticks, seed: seed), []) }
            }
            for task in 1...4 { group.addTask { ([], try await self.send(task, test, ticks, seed: seed)) } }
            for try await (history, sent) in group {
                if !history.isEmpty { histories.append(history) }
                sends += sent
            }
        }
        await test.close()
        #expect(histories.count == 40 && sends.count == 160)
        for send in sends {
            let reached = recorder.reached(send.number)
            #expect(Set(reached).count == reached.count, "send \(send.number) reached a handle twice")
            var allowed = Set<String>()
            for history in histories {
                let seen = history.filter { $0.from <= send.until && $0.until >= send.from }
                let matching = seen.compactMap(\.content).filter { send.expression.matches($0.tags) }
                allowed.formUnion(matching.map(\.handle))
                // One state all along, and it matches: it must have been reached.
                if seen.count == 1, let only = matching.first {
                    #expect(reached.contains(only.handle), "send \(send.number) missed \(only.handle)")
                }
            }
            #expect(
                allowed.isSuperset(of: reached),
                "send \(send.number): \(Set(reached).subtracting(allowed))"
            )
        }
        // The model is not empty: most sends reached somebody.
        #expect(sends.count(where: { !recorder.reached($0.number).isEmpty }) > 80)
    }
}

import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import SQLiteStorage
import Synchronization
import TagIndex
import Testing
import TidingsBackend
import TidingsConformance
import TidingsModels
@testable import HubCore
@testable import HubStore

@Suite("Dispatch")
struct DispatchTests {
    private let push = HubNotification.native(.apns, #"{"aps":{"alert":"x"}}"#)

    private func withFolder(_ body: (String) async throws -> Void) async throws {
        let folder = try Files.makeScratchFolder("tidings-dispatch")
        defer { Files.removeTree(folder) }
        try await body(folder)
    }

    @Test("every target of several blocks is attempted once and ends in one outcome")
    func blocks() async throws {
        try await withFolder { folder in
            let sender = ScriptedSender { _, target in
                target.handle.text.hasSuffix("0")
                    ? .refused(.invalidNotificationFormat, reason: "x") : .accepted
            }
            let test = try await TestHub.open(folder, [.apns: sender])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<2500 { group.addTask { _ = try await test.register(index) } }
                try await group.waitForAll()
            }
            let details = try await test.outcome(try await test.hub.send(push, tags: "all"))
            #expect(details.state == .completed)
            #expect(details.targetCount == 2500)
            #expect(details.outcomes[.apns] == [.success: 2343, .invalidNotificationFormat: 157])
            #expect(Set(sender.handles).count == 2500 && sender.handles.count == 2500)
            await test.close()
        }
    }

    @Test("a target waits as long as the platform asked, the others do not")
    func retryAfter() async throws {
        try await withFolder { folder in
            let sender = ScriptedSender { call, target in
                target.handle.text.hasSuffix("1") && call == 1
                    ? .retry(.throttled, reason: "later", after: .seconds(600)) : .accepted
            }
            let test = try await TestHub.open(folder, [.apns: sender])
            for index in 0..<3 { _ = try await test.register(index) }
            let id = try await test.hub.send(push, tags: "all")
            try await test.resting()
            test.clock.advance(by: .seconds(300))
            #expect(sender.calls.count == 1)
            test.clock.advance(by: .seconds(301))
            #expect(try await test.outcome(id).outcomes == [.apns: [.success: 3]])
            #expect(sender.calls == [["00000000", "00000001", "00000002"], ["00000001"]])
            await test.close()
        }
    }

    @Test(
        "after five tries the outcome is the platform's, and what asks to wait past the time budget ends at once"
    )
    func givingUp() async throws {
        try await withFolder { folder in
            let sender = ScriptedSender { _, target in
                target.handle.text.hasSuffix("1")
                    ? .retry(.pnsUnavailable, reason: "down", after: .zero)
                    : .retry(.throttled, reason: "tomorrow", after: .seconds(86400))
            }
            let test = try await TestHub.open(folder, [.apns: sender])
            for index in 0..<2 { _ = try await test.register(index) }
            let details = try await test.outcome(try await test.hub.send(push, tags: "all"))
            #expect(details.outcomes == [.apns: [.pnsUnavailable: 1, .throttled: 1]])
            #expect(sender.calls.count == 5)
            await test.close()
        }
    }

    @Test(
        "a dead handle is removed, unless it was registered again after the platform's verdict; a mass of them is not believed"
    )
    func deadHandles() async throws {
        try await withFolder { folder in
            let clock = WorldClock()
            let later = clock.now + .seconds(3600)
            let sender = ScriptedSender { call, target in
                if call > 1 { return .dead(.badChannel, reason: "x", asOf: nil) }
                return .dead(
                    .expiredChannel,
                    reason: "gone",
                    asOf: target.handle.text.hasSuffix("1") ? Timestamp(seconds: 1) : later
                )
            }
            let test = try await TestHub.open(folder, [.apns: sender], clock: clock)
            for index in 0..<2 { _ = try await test.register(index) }
            #expect(
                try await test.outcome(try await test.hub.send(push, tags: "all")).outcomes == [
                    .apns: [.expiredChannel: 2]
                ]
            )
            #expect(
                try await test.hub.registrations(.all, after: nil, countMax: 100).registrations.map(
                    \.content.handle.text
                ) == ["00000001"]
            )

            for index in 100..<200 { _ = try await test.register(index, tags: "many") }
            #expect(
                try await test.outcome(try await test.hub.send(push, tags: "many")).outcomes == [
                    .apns: [.badChannel: 100]
                ]
            )
            let left = try await test.hub.registrations(.tag(try HubTag("many")), after: nil, countMax: 100)
            #expect(left.registrations.count == 100)
            await test.close()
        }
    }

    @Test(
        "a send that was accepted and not dispatched is taken up at the next start, its finished blocks are not repeated"
    )
    func resume() async throws {
        try await withFolder { folder in
            let first = try await TestHub.open(folder, [:])
            for index in 0..<1500 { _ = try await first.register(index) }
            await first.hub.dispatcher.stop()
            let id = try await first.hub.send(push, tags: "all")
            let audience = first.store.index(for: "all")
            try await first.store.begin(id, audience, now: first.clock.now)
            try await first.store.finish(
                id,
                block: 0,
                AttemptResult(outcomes: [.apns: [.success: 1024]])
            )
            await first.close()

            let sender = ScriptedSender { _, _ in .accepted }
            let second = try await TestHub.open(folder, [.apns: sender])
            let details = try await second.outcome(id)
            #expect(details.outcomes == [.apns: [.success: 1500]])
            #expect(sender.handles.count == 476)
            await second.close()
        }
    }

    @Test("targets that wait for another try survive the process, with how often they were tried")
    func retriesSurvive() async throws {
        try await withFolder { folder in
            let clock = WorldClock()
            let busy = ScriptedSender { _, target in
                target.handle.text.hasSuffix("1")
                    ? .retry(.throttled, reason: "later", after: .seconds(60)) : .accepted
            }
            let first = try await TestHub.open(folder, [.apns: busy], clock: clock)
            for index in 0..<3 { _ = try await first.register(index) }
            let id = try await first.hub.send(push, tags: "all")
            try await first.resting()
            await first.close()
            #expect(busy.handles.count == 3)
            // The waiting one is deleted, and its number must not go to another while it waits.
            let second = try await TestHub.open(folder, [.apns: busy], clock: clock)
            #expect(try await second.hub.details(id.text).outcomes == [.apns: [.success: 2]])
            try await second.resting()
            for _ in 1...3 {
                let calls = busy.calls.count
                clock.advance(by: .seconds(61))
                while busy.calls.count == calls { await Task.yield() }
                try await second.resting()
            }
            await second.close()
            #expect(busy.calls.suffix(3) == [["00000001"], ["00000001"], ["00000001"]])

            clock.advance(by: .seconds(61))
            let third = try await TestHub.open(folder, [.apns: busy], clock: clock)
            let details = try await third.outcome(id)
            #expect(details.state == .completed)
            #expect(details.outcomes == [.apns: [.success: 2, .throttled: 1]])
            #expect(busy.handles.count == 3 + 4)
            await third.close()
        }
    }

    @Test("a target that is gone when its next try is due is skipped, and what is too old is given up")
    func retriesOfTheGone() async throws {
        try await withFolder { folder in
            let clock = WorldClock()
            let sender = ScriptedSender { _, _ in .retry(.throttled, reason: "later", after: .seconds(60)) }
            let test = try await TestHub.open(folder, [.apns: sender], clock: clock)
            let gone = try await test.register(1)
            _ = try await test.register(2)
            let id = try await test.hub.send(push, tags: "all")
            try await test.resting()
            await test.hub.dispatcher.stop()
            try await test.hub.delete(gone.id.text, .none, by: .manager)
            _ = try await test.register(3)
            await test.close()

            clock.advance(by: Dispatcher.timeBudget)
            let later = try await TestHub.open(folder, [.apns: sender], clock: clock)
            let details = try await later.outcome(id)
            #expect(details.state == .abandoned)
            #expect(details.outcomes == [.apns: [.skipped: 1, .abandoned: 1]])
            #expect(sender.handles.sorted() == ["00000001", "00000002"])
            await later.close()
        }
    }

    @Test("sends whose targets wait hold no place: more of them than are under way at a time stop no other")
    func waitingHoldsNothing() async throws {
        try await withFolder { folder in
            let sender = ScriptedSender { _, target in
                target.handle.text.hasSuffix("1")
                    ? .retry(.throttled, reason: "later", after: .seconds(600)) : .accepted
            }
            let test = try await TestHub.open(folder, [.apns: sender])
            _ = try await test.register(1, tags: "busy")
            _ = try await test.register(2, tags: "idle")
            for _ in 0..<40 { _ = try await test.hub.send(push, tags: "busy") }
            let details = try await test.outcome(try await test.hub.send(push, tags: "idle"))
            #expect(details.outcomes == [.apns: [.success: 1]])
            await test.close()
        }
    }

    @Test("however many sends wait, memory holds a few; all go out")
    func longQueue() async throws {
        try await withFolder { folder in
            let gate = AsyncStream.makeStream(of: Void.self)
            let sender = HeldSender(until: gate.stream)
            let test = try await TestHub.open(folder, [.apns: sender])
            _ = try await test.register(1)
            var ids: [NotificationID] = []
            for _ in 0..<2000 { ids.append(try await test.hub.send(push, tags: "all")) }
            #expect(await test.hub.dispatcher.heldCount <= 288)
            let counts = try await test.hub.dispatcher.sendCounts()
            #expect(counts.waiting == 2000 - 32 && counts.underWay == 32 && counts.resting == 0)
            // A scheduled one is on disk alone.
            let later = try await test.hub.send(push, tags: "all", at: test.clock.now + .seconds(3600))
            try await test.resting()
            gate.continuation.finish()
            for id in ids { #expect(try await test.outcome(id).outcomes == [.apns: [.success: 1]]) }
            test.clock.advance(by: .seconds(3600))
            #expect(try await test.outcome(later).outcomes == [.apns: [.success: 1]])
            await test.close()
        }
    }

    @Test("a database of the first version is brought forward with what it holds")
    func migration() async throws {
        try await withFolder { folder in
            let old = try Database(
                path: folder + "/hub.sqlite",
                schema: .init(Array(Database.Schema.hub.migrations.prefix(1)))
            )
            let id = "00112233445566778899aabbccddeeff-20261130000000-1-1"
            try await old.write { connection in
                try connection.run(
                    "INSERT INTO send (id, enqueued, format, tags, headers, body, state, live) VALUES (?1, ?2, 'apple', '', x'0000000000000000', ?3, 'Enqueued', 1)",
                    .text(id),
                    .integer(SystemTimeSource().now.milliseconds),
                    .blob(Array(#"{"aps":{}}"#.utf8))
                )
            }
            old.close()
            let test = try await TestHub.open(folder, [:])
            let details = try await test.outcome(try #require(NotificationID(id)))
            #expect(details.state == .noTargetFound)
            await test.close()
        }
    }

    @Test("records of earlier versions are read: the first as one that no Manage key made")
    func oldRecord() throws {
        let registration = Registration(
            id: try #require(RegistrationID("1-2-3")),
            etag: 4,
            expires: .never,
            updated: Timestamp(seconds: 5),
            content: RegistrationContent(handle: try PlatformHandle("AB", platform: .apns), tags: [])
        )
        let new = RegistrationRecord.encode(registration, isManaged: true, slot: nil)
        #expect(RegistrationRecord.decode(new)?.isManaged == true)
        // Version 2 ends its head with the flag, and version 1 has no flag.
        for (old, isManaged) in [
            ([1] + Array(new.dropFirst(4)), false), ([2] + [new[1]] + Array(new.dropFirst(4)), true),
        ] {
            let read = try #require(RegistrationRecord.decode(old))
            #expect(read.0 == registration && read.isManaged == isManaged && read.slot == nil)
        }
        #expect(RegistrationRecord.decode([4] + Array(new.dropFirst())) == nil)
        let slot = InstallationSlot(installation: "i", tile: nil, template: "t")
        let derived = RegistrationRecord.encode(registration, isManaged: false, slot: slot)
        #expect(RegistrationRecord.decode(derived)?.slot == slot)
    }

    @Test("a registration that changed since the resolve is checked again; one that is gone is skipped")
    func changedMeanwhile() async throws {
        try await withFolder { folder in
            let first = try await TestHub.open(folder, [:])
            var made: [Registration] = []
            for index in 0..<3 { made.append(try await first.register(index)) }
            await first.hub.dispatcher.stop()
            let id = try await first.hub.send(push, tags: "all")
            try await first.store.begin(id, first.store.index(for: "all"), now: first.clock.now)
            try await first.hub.delete(made[0].id.text, .none, by: .manager)
            _ = try await first.hub.put(
                made[1].id.text,
                bodyID: nil,
                RegistrationContent(handle: made[1].content.handle, tags: []),
                .none,
                by: .manager
            )
            // The freed number must not be taken while the send is live.
            _ = try await first.register(77)
            await first.close()

            let sender = ScriptedSender { _, _ in .accepted }
            let second = try await TestHub.open(folder, [.apns: sender])
            #expect(try await second.outcome(id).outcomes == [.apns: [.success: 1, .skipped: 2]])
            #expect(sender.handles == ["00000002"])
            await second.close()
        }
    }

    @Test("of two hundred writers with one ETag one wins for each version")
    func etags() async throws {
        try await withFolder { folder in
            let test = try await TestHub.open(folder, [:])
            let registration = try await test.register(1)
            for version in 1...2 {
                let winners = await withTaskGroup(of: Bool.self) { group in
                    for _ in 0..<200 {
                        group.addTask {
                            (try? await test.hub.put(
                                registration.id.text,
                                bodyID: nil,
                                registration.content,
                                .etag(version),
                                by: .manager
                            )) != nil
                        }
                    }
                    return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
                }
                #expect(winners == 1)
            }
            await test.close()
        }
    }
}

extension SQLiteHubStore {
    /// An audience as the dispatcher resolves it.
    fileprivate func index(for tag: String) -> any Audience {
        audienceIndex.resolve(.native(.apns), .tag(HubTag(unchecked: tag)))
    }
}

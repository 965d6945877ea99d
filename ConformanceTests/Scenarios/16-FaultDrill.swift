import HubClient
import JSONBytes
import Testing
import TidingsConformance
import TidingsModels

/// A team makes its push services fail and watches what its own programs do: no cloud lends itself to that.
@Suite("16 Fault drill")
struct FaultDrill {
    @Test(
        "a throttled device, a service that is down, a phone that lost its token: nothing is lost, everything is explained"
    )
    func drill() async throws {
        var options = World.Options()
        // The outage lasts as long as the drill needs, and no try is the last one.
        options.retry.delayMin = .milliseconds(50)
        options.retry.delayMax = .milliseconds(200)
        options.retry.attemptCountMax = 10_000
        try await World.run(options) { world in
            let hub = try world.hub()
            let phone = try await world.device("phone", .apns)
            let tablet = try await world.device("tablet", .fcmV1)
            for (device, user) in [(phone, "alice"), (tablet, "bob")] { try await device.login(user) }
            func notify(_ user: String, _ platform: String, _ text: String) async throws -> NotificationID {
                let ids = try await world.app("carol").notify(platform: platform, user: user, text: text)
                return try #require(ids.values.first)
            }

            // Apple finds one device too busy, twice; the third try gets through.
            try await world.fault(
                #"{"fault":"answer","status":429,"retryAfter":0,"platform":"apns","count":2}"#
            )
            let busy = try await notify("alice", "apns", "third try")
            #expect(try await phone.nextText() == "From carol: third try")
            #expect(try await world.outcome(busy).outcomes == [.apns: [.success: 1]])

            // Google is down. What goes to Apple does not notice; what goes to Google waits and arrives.
            let down = try await world.fault(#"{"fault":"answer","status":503,"platform":"fcm"}"#)
            let waiting = try await notify("bob", "fcm", "after the outage")
            let meanwhile = try await notify("alice", "apns", "meanwhile")
            #expect(try await phone.nextText() == "From carol: meanwhile")
            #expect(try await world.outcome(meanwhile).state == .completed)
            #expect(try await hub.details(waiting).state == .processing)
            let removal = try await world.request("DELETE", try world.gatewayURL + "/-/faults/\(down)")
            #expect(removal.status.code == 204)
            #expect(try await tablet.nextText() == "From carol: after the outage")
            #expect(try await world.outcome(waiting).outcomes == [.fcmV1: [.success: 1]])

            // The payload is refused: the outcome says so, and the registration stays.
            try await world.fault(#"{"fault":"answer","status":413,"platform":"apns","count":1}"#)
            let large = try await notify("alice", "apns", "too large, they say")
            #expect(try await world.outcome(large).outcomes == [.apns: [.invalidNotificationSize: 1]])

            // The phone lost its token: 410. The hub forgets the registration, and the next one reaches nobody, until the app
            // registers again.
            let handle = try await phone.handle()
            try await world.fault(
                "{\"fault\":\"answer\",\"status\":410,\"handle\":\"\(handle)\",\"count\":1}"
            )
            let lost = try await notify("alice", "apns", "nobody hears this")
            #expect(try await world.outcome(lost).outcomes == [.apns: [.expiredChannel: 1]])
            let nobody = try await notify("alice", "apns", "nor this")
            #expect(try await world.outcome(nobody).state == .noTargetFound)
            try await phone.login("alice")
            _ = try await notify("alice", "apns", "back again")
            #expect(try await phone.nextText() == "From carol: back again")
        }
    }
}

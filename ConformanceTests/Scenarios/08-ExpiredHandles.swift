import Foundation
import HTTPMessages
import HubClient
import HubCore
import TidingsConformance
import TidingsModels
import Testing

/// Handles that their push service calls dead leave the hub, and whoever comes back registers again.
@Suite("08 Expired handles")
struct ExpiredHandles {
    private func push(_ platform: Platform) -> HubNotification {
        switch platform {
        case .wns:
            .native(
                .wns,
                "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">x</text></binding></visual></toast>",
                headers: [.init("X-WNS-Type", "wns/toast")]
            )
        case .fcmV1: .native(.fcmV1, #"{"message":{"data":{"message":"x"}}}"#)
        default: .native(.apns, #"{"aps":{"alert":"x"}}"#)
        }
    }

    @Test(
        "a handle that its device gave up is ExpiredChannel, its registrations go, and the device's new one stays",
        arguments: [Platform.apns, .fcmV1, .wns]
    )
    func givenUp(platform: Platform) async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("phone", platform)
            let old = try await device.handle()
            // Two registrations of the handle, and one of another device.
            let (first, second) = (
                try await world.registerNative(old, platform, tag: "news"),
                try await world.registerNative(old, platform, tag: "sport")
            )
            let other = try await world.device("other", platform)
            let kept = try await world.registerNative(other, platform, tag: "news")

            // A change of user gives the device another handle; nobody told the hub about the old one.
            try await device.login("alice")
            try await device.login("bob")
            #expect(try await device.handle() != old)
            for (tag, dead, alive) in [("news", first, 1), ("sport", second, 0)] {
                let details = try await world.outcome(
                    try #require(try await hub.send(push(platform), tags: tag))
                )
                #expect(
                    details.outcomes[platform]?[.expiredChannel] == 1 && details.count(.success) == alive,
                    "\(tag): \(details.outcomes)"
                )
                #expect(try await hub.registration(dead.id) == nil)
            }
            #expect(try await other.nextText() == "x")
            #expect(try await hub.registration(kept.id) != nil)
            let repeated = try await world.outcome(
                try #require(try await hub.send(push(platform), tags: "sport"))
            )
            #expect(repeated.state == .noTargetFound)

            try await world.app("alice").notify(platform: platform.appName, user: "bob", text: "still here")
            #expect(try await device.nextText() == "From alice: still here")
        }
    }

    @Test(
        "a gateway that lost its memory: the old handle leaves the hub, the device registers the new one by itself"
    )
    func lostMemory() async throws {
        try await World.run { world in
            let hub = try world.hub()
            let device = try await world.device("phone", .apns)
            try await device.login("alice")
            try await device.subscribe(["World"])
            let old = try await device.handle()
            #expect(try await hub.registrations().count == 2)
            await device.stop()
            await world.stopServer()
            for suffix in ["", "-wal", "-shm"] {
                try? FileManager.default.removeItem(atPath: world.serverState + "/gateway.sqlite" + suffix)
            }
            try await world.startServer()

            // While the device is away: the service does not know the handle, so the registrations go.
            let details = try await world.outcome(
                try #require(
                    try await world.hub().send(.template(#"{"messageParam":"lost"}"#), tags: "World")
                )
            )
            #expect(details.outcomes[.apns]?[.badChannel] == 1, "\(details.outcomes)")

            try await world.start(device)
            _ = try await device.nextEvent("registered")
            _ = try await device.nextEvent("subscribed")
            let new = try await device.handle()
            #expect(new != old)
            let handles = try await world.hub().registrations().map(\.content.handle.text.localizedLowercase)
            #expect(handles.count(where: { $0 == new }) == 2, "\(handles)")
            try await world.app("bob").notify(platform: "apns", user: "alice", text: "back")
            #expect(try await device.nextText() == "From bob: back")
            _ = try await world.hub().send(.template(#"{"messageParam":"news"}"#), tags: "World")
            #expect(try await device.nextText() == "news")
            // The back end's registration of the old handle was the device's own: it has moved on.
            _ = try await world.outcome(
                try #require(try await world.hub().send(push(.apns), tags: ""))
            )
            let left = try await world.hub().registrations().map(\.content.handle.text.localizedLowercase)
            #expect(!left.contains(old.localizedLowercase), "\(left)")
        }
    }
}

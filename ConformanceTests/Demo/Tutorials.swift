import BackendClient
import DeviceDaemon
import DeviceLink
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsConformance
import TidingsModels

/// The five tutorials, one after another in one World: app, app back end, hub, platform sender, gateway, device.
struct Tutorials {
    private let world: World
    private let narrator: Narrator

    init(_ world: World, _ narrator: Narrator) {
        self.world = world
        self.narrator = narrator
    }

    func all() async throws {
        let iPhone = try await world.device("Alice's iPhone", .apns)
        let android = try await world.device("Alice's Android", .fcmV1)
        let windows = try await world.device("Alice's PC", .wns)
        let bystander = try await world.device("Dave's iPhone", .apns)
        try await notifyUsers([iPhone, android, windows], bystander)
        try await registerCurrentUser()
        try await breakingNews(iPhone, android, windows)
        try await securePush([iPhone, android, windows])
        try await richPush([iPhone, android, windows])
    }

    // MARK: 01

    private func notifyUsers(_ devices: [WorldDevice], _ bystander: WorldDevice) async throws {
        narrator.title("01", "Notify users: Carol sends to Alice, who has a device on each platform")
        for device in devices { try await device.login("alice") }
        try await bystander.login("dave")
        let text = "Lunch at noon? \"Yes\" 🍜 <b>&</b>"
        for device in devices {
            let ids = try await world.app("carol").notify(
                platform: device.platform.appName,
                user: "alice",
                text: text
            )
            try await narrator.shows(device, text: "From carol: " + text, sent: ids)
        }
        let results = try await devices[0].daemon.send(to: "alice", platforms: ["mpns"], text: "x")
        narrator.check(
            "a platform that cannot be notified says why",
            results.first?.status == 400,
            observed: results.map { "\($0.target) \($0.status ?? 0) \($0.reason)" }.joined()
        )
        let marker = try await world.app("carol").notify(
            platform: "apns",
            user: "dave",
            text: "only for Dave"
        )
        try await narrator.shows(bystander, text: "From carol: only for Dave", sent: marker)
        let count = try await bystander.daemon.inboxEntries().count
        narrator.check(
            "Dave's iPhone got nothing of Alice's",
            count == 1,
            observed: "\(count) push in its inbox"
        )
    }

    // MARK: 02

    private func registerCurrentUser() async throws {
        narrator.title(
            "02",
            "Register the current user: the installation keeps one registration through logins, tokens and users"
        )
        var options = World.DeviceOptions()
        options.registersByInstallation = true
        let tablet = try await world.device("Erin's iPad", .apns, options)
        try await tablet.login("erin")
        try await tablet.login("erin")
        var found = try await world.hub().registrations(tag: try HubTag.username("erin"))
        narrator.check(
            "two logins make one registration",
            found.count == 1,
            observed:
                "\(found.count) with tags \(found.first?.content.tags.map(\.text).joined(separator: ",") ?? "")"
        )
        try await narrator.shows(
            tablet,
            text: "From carol: Welcome",
            sent: try await world.app("carol").notify(platform: "apns", user: "erin", text: "Welcome")
        )
        try await tablet.login("frank")
        found = try await world.hub().registrations(tag: try HubTag.username("erin"))
        narrator.check(
            "after Frank's login Erin has none left",
            found.isEmpty,
            observed: "\(found.count) registrations"
        )
        try await narrator.shows(
            tablet,
            text: "From carol: Hello Frank",
            sent: try await world.app("carol").notify(platform: "apns", user: "frank", text: "Hello Frank")
        )
    }

    // MARK: 03

    private func breakingNews(
        _ iPhone: WorldDevice,
        _ android: WorldDevice,
        _ windows: WorldDevice
    ) async throws {
        narrator.title(
            "03",
            "Breaking news: templates and tags; the console sends to each of the six categories"
        )
        try await iPhone.subscribe(["World", "Sports"])
        try await android.subscribe(["Politics"])
        try await windows.subscribe(["World"])
        for category in NewsCategory.allCases {
            let values = JSONValue.object(["messageParam": .string("Breaking \(category.rawValue) News!")])
            let id = try await world.hub().send(
                .template(values.text, headers: [.init("apns-push-type", "alert")]),
                tags: category.rawValue
            )
            guard let id else { continue }
            let details = try await world.outcome(id)
            let text = "Breaking \(category.rawValue) News!"
            switch category {
            case .world:
                try await narrator.shows(iPhone, text: text, sent: ["apns": id])
                try await narrator.shows(windows, text: text, sent: ["wns": id])
            case .sports: try await narrator.shows(iPhone, text: text, sent: ["apns": id])
            case .politics: try await narrator.shows(android, text: text, sent: ["fcm": id])
            default:
                narrator.check(
                    "\(category.rawValue) has no reader",
                    details.state == .noTargetFound,
                    observed: details.state.rawValue
                )
            }
        }
        try await iPhone.subscribe(["Sports"])
        let first = try await world.hub().send(.template(#"{"messageParam":"World again"}"#), tags: "World")
        if let first { try await narrator.shows(windows, text: "World again", sent: ["wns": first]) }
        let second = try await world.hub().send(
            .template(#"{"messageParam":"Sports again"}"#),
            tags: "Sports"
        )
        if let second { try await narrator.shows(iPhone, text: "Sports again", sent: ["apns": second]) }
        narrator.say("(the iPhone deselected World: its inbox went straight to Sports)")
    }

    // MARK: 04

    private func securePush(_ devices: [WorldDevice]) async throws {
        narrator.title(
            "04",
            "Secure push: only an id passes hub and push service; each device fetches the text with its own login"
        )
        let secret = "The PIN is 4711"
        let ids = try await world.app("carol").sendSecure(secret, to: "alice")
        for device in devices { try await narrator.shows(device, text: secret, sent: ids) }
        var carriers: [String] = []
        for device in devices {
            for entry in try await device.daemon.inboxEntries()
            where String(decoding: entry.notification.data, as: UTF8.self).contains("4711") {
                carriers.append(device.name)
            }
        }
        let inLogs = String(decoding: world.logBytes, as: UTF8.self).contains("4711")
        narrator.check(
            "the secret is in no push and in no log line",
            carriers.isEmpty && !inLogs,
            observed:
                "pushes with it: \(carriers.count); in \(world.logBytes.count) bytes of log: \(inLogs ? "yes" : "no")"
        )
    }

    // MARK: 05

    private func richPush(_ devices: [WorldDevice]) async throws {
        narrator.title("05", "Rich push: a picture, fetched by id and shown on More")
        let picture = Picture.make()
        let ids = try await world.app("carol").sendRich(
            picture,
            type: "image/png",
            message: "Check this image out!",
            to: "alice"
        )
        for device in devices {
            try await narrator.showsFile(device, text: "Check this image out!", bytes: picture, sent: ids)
        }
        let entry = try await devices[0].daemon.inboxEntries().last
        let opened = try await devices[0].daemon.open(entry?.id ?? 0, action: "richPushMore")
        narrator.check(
            "open … --action richPushMore gives the picture",
            opened["file"] != nil,
            observed: "\(opened["contentType"]?.stringValue ?? "") at \(opened["file"]?.stringValue ?? "")"
        )
        let coupon = try await world.app("carol").sendRich(
            kind: "coupon",
            content: "TIDINGS-10",
            message: "A coupon for you",
            to: "alice"
        )
        for device in devices { try await narrator.shows(device, text: "A coupon for you", sent: coupon) }
    }
}

/// A picture of 64 by 64 pixels that needs no file.
enum Picture {
    static func make() -> [UInt8] {
        // The built-in sample would do; this one is larger than a push may be, so that it could not have travelled inside.
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + (0..<120_000).map { UInt8(truncatingIfNeeded: $0 &* 73 &+ $0 >> 8) }
    }
}

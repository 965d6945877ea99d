import JSONBytes
import ProcessLifecycle
import TidingsModels

/// What a device keeps between runs, in `device.json` (mode 0600). The names are the tutorials'.
struct DeviceState: Equatable, Sendable {
    struct Login: Equatable, Sendable {
        var user: String
        var password: String
    }

    /// A registration with the app back end. It is good for exactly this back end, user and handle.
    struct BackendRegistration: Equatable, Sendable {
        var id: String
        var backend: String
        var user: String
        var handle: String
        var tags: [String]
        var style: String
        /// The last success.
        var at: Timestamp
    }

    /// The breaking-news subscription: what the user wants, and what the hub confirmed.
    struct Subscription: Equatable, Sendable {
        var id: String?
        var handle: String
        var categories: [String]
        var locale: String?
        var at: Timestamp
    }

    var uaid: String?
    var channelID: String?
    /// Channels that were given up and whose end the gateway has not confirmed.
    var formerChannelIDs: [String] = []
    var handle: String?
    /// `PushToUserInstallationId`: made once, never again.
    var installationID: String
    /// The keys that Web Push messages to this device are encrypted for; made when they are first needed.
    var webPush: WebPushKeys?
    var login: Login?
    var loginTags: [String] = []
    /// `RegistrationId` with what it is bound to.
    var registration: BackendRegistration?
    /// `BreakingNewsCategories`, wanted.
    var wantedCategories: [String] = []
    var wantedLocale: String?
    /// `BreakingNewsCategories`, confirmed.
    var subscription: Subscription?

    init(installationID: String) { self.installationID = installationID }

    // MARK: The file

    static func load(_ path: String, newInstallationID: String) throws -> DeviceState {
        guard let bytes = try Files.read(path) else { return DeviceState(installationID: newInstallationID) }
        let json = try JSONValue(parsing: bytes)
        var state = DeviceState(
            installationID: json["PushToUserInstallationId"]?.stringValue ?? newInstallationID
        )
        state.uaid = json["uaid"]?.stringValue
        state.channelID = json["channelID"]?.stringValue
        state.formerChannelIDs = strings(json["formerChannelIDs"])
        state.handle = json["handle"]?.stringValue
        state.webPush = json["webPush"].flatMap(WebPushKeys.init)
        if let user = json["login"]?["user"]?.stringValue,
            let password = json["login"]?["password"]?.stringValue
        {
            state.login = Login(user: user, password: password)
        }
        state.loginTags = strings(json["loginTags"])
        let registration = json["registration"]
        if let id = json["RegistrationId"]?.stringValue, let backend = registration?["backend"]?.stringValue,
            let user = registration?["user"]?.stringValue, let handle = registration?["handle"]?.stringValue
        {
            state.registration = BackendRegistration(
                id: id,
                backend: backend,
                user: user,
                handle: handle,
                tags: strings(registration?["tags"]),
                style: registration?["style"]?.stringValue ?? "handle",
                at: time(registration?["at"])
            )
        }
        state.wantedCategories = strings(json["BreakingNewsCategories"]?["wanted"])
        state.wantedLocale = json["BreakingNewsCategories"]?["wantedLocale"]?.stringValue
        if let confirmed = json["BreakingNewsCategories"]?["confirmed"],
            let handle = confirmed["handle"]?.stringValue
        {
            state.subscription = Subscription(
                id: confirmed["registrationId"]?.stringValue,
                handle: handle,
                categories: strings(confirmed["categories"]),
                locale: confirmed["locale"]?.stringValue,
                at: time(confirmed["at"])
            )
        }
        return state
    }

    /// On disk when it returns.
    func save(_ path: String) throws { try Files.replace(path, with: json.serialized() + [0x0A]) }

    private var json: JSONValue {
        var object = JSONObject(["PushToUserInstallationId": .string(installationID)])
        func set(_ name: String, _ text: String?) { if let text { object[name] = .string(text) } }
        set("uaid", uaid)
        set("channelID", channelID)
        if !formerChannelIDs.isEmpty { object["formerChannelIDs"] = Self.array(formerChannelIDs) }
        set("handle", handle)
        object["webPush"] = webPush?.json
        if let login {
            object["login"] = .object(["user": .string(login.user), "password": .string(login.password)])
        }
        object["loginTags"] = Self.array(loginTags)
        if let registration {
            object["RegistrationId"] = .string(registration.id)
            object["registration"] = .object([
                "backend": .string(registration.backend), "user": .string(registration.user),
                "handle": .string(registration.handle),
                "tags": Self.array(registration.tags), "style": .string(registration.style),
                "at": .number(registration.at.milliseconds),
            ])
        }
        var news = JSONObject(["wanted": Self.array(wantedCategories)])
        if let wantedLocale { news["wantedLocale"] = .string(wantedLocale) }
        if let subscription {
            var confirmed = JSONObject([
                "handle": .string(subscription.handle), "categories": Self.array(subscription.categories),
                "at": .number(subscription.at.milliseconds),
            ])
            if let id = subscription.id { confirmed["registrationId"] = .string(id) }
            if let locale = subscription.locale { confirmed["locale"] = .string(locale) }
            news["confirmed"] = .object(confirmed)
        }
        object["BreakingNewsCategories"] = .object(news)
        return .object(object)
    }

    private static func array(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
    private static func strings(_ value: JSONValue?) -> [String] {
        (value?.arrayValue ?? []).compactMap(\.stringValue)
    }
    private static func time(_ value: JSONValue?) -> Timestamp {
        Timestamp(milliseconds: Int64(value?.integerValue ?? 0))
    }
}

import BackendClient
import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import TidingsModels

/// Registering: with the app back end for the user, with the hub for the news.
extension DeviceDaemon {
    func backendClient(_ login: DeviceState.Login? = nil) -> BackendClient? {
        guard let backend = configuration.backend else { return nil }
        let credential = (login ?? state.login).map {
            BackendCredential.basic(user: $0.user, password: $0.password)
        }
        return BackendClient(endpoint: backend, credential: credential, client: client)
    }

    /// At each start and whenever the handle changes: what succeeded under a day ago and is unchanged is left alone.
    func registerAgain() async {
        var hasFailed = false
        do { try await registerUser(force: false) } catch {
            hasFailed = true
            registrationFailed(error)
        }
        do { try await subscribeToNews(force: false) } catch {
            hasFailed = true
            emit(DeviceEvent("subscription_failed", ["reason": .string(String(describing: error))]))
        }
        try? await fetchAwaiting()
        if Task.isCancelled { return }
        retryCount = hasFailed ? retryCount + 1 : 0
        // A failure is tried again with growing waits; a success is renewed when its day is over.
        let wait =
            hasFailed
            ? min(.seconds(3600), .seconds(5) * (1 << min(retryCount, 12)))
            : DaemonConfiguration.registrationLife
        scheduleRegistration(after: wait)
    }

    /// Replaces the attempt that was planned. `stop` cancels it.
    func scheduleRegistration(after delay: Duration) {
        retryTask?.cancel()
        if isStopped { return }
        retryTask = Task {
            if delay > .zero {
                guard (try? await time.sleep(for: delay)) != nil else { return }
            }
            await self.registerAgain()
        }
    }

    func registrationFailed(_ error: any Error) {
        var event = JSONObject(["domain": "Registration", "reason": .string(String(describing: error))])
        if let status = (error as? BackendError)?.status { event["status"] = .number(status) }
        emit(DeviceEvent("registration_failed", fields: event))
    }

    private func isFresh(_ at: Timestamp) -> Bool {
        time.now < at + DaemonConfiguration.registrationLife && at <= time.now
    }

    // MARK: The user

    /// Registers the device for the user that is logged in; one registration at a time.
    func registerUser(force: Bool) async throws {
        try await inQueue { try await $0.registerUserNow(force: force) }
    }

    /// To be called in the queue.
    func registerUserNow(force: Bool) async throws {
        guard let login = state.login, let handle = state.handle, configuration.backend != nil else { return }
        try await registerUser(login, handle, force: force)
    }

    private func registerUser(_ login: DeviceState.Login, _ handle: String, force: Bool) async throws {
        guard let backend = backendClient(login), let address = configuration.backend?.origin else { return }
        let before = state.registration
        var known = before
        // A cached id is good for exactly one back end, user and handle.
        if known?.backend != address || known?.user != login.user || known?.handle != handle { known = nil }
        if !force, let known, known.tags == state.loginTags, known.style == configuration.style.rawValue,
            isFresh(known.at)
        {
            return
        }
        let id: String
        switch configuration.style {
        case .installation:
            try await backend.registerInstallation(
                platform: configuration.platform == .apns ? "ios" : configuration.platform.appName,
                installationID: state.installationID,
                deviceToken: handle
            )
            id = state.installationID
        case .handle: id = try await register(backend, known?.id, handle)
        }
        if configuration.style == .handle, let before, before.backend == address, before.user == login.user,
            before.handle != handle, before.id != id
        {
            // The old handle's registration; the hub would else find out with the next push.
            try? await backend.unregister(id: before.id)
        }
        state.registration = .init(
            id: id,
            backend: address,
            user: login.user,
            handle: handle,
            tags: state.loginTags,
            style: configuration.style.rawValue,
            at: time.now
        )
        try save()
        emit(DeviceEvent("registered", ["user": .string(login.user), "registrationId": .string(id)]))
    }

    /// PUT under the cached id; a 410 forgets it and starts over, once.
    private func register(
        _ backend: BackendClient,
        _ cached: String?,
        _ handle: String
    ) async throws -> String {
        let device = DeviceRegistration(
            platform: configuration.platform.appName,
            handle: handle,
            tags: state.loginTags
        )
        if let cached {
            do {
                try await backend.register(id: cached, device)
                return cached
            } catch let error as BackendError where error.status == 410 {
                state.registration = nil
                try save()
            }
        }
        let id = try await backend.registrationID(handle: handle)
        try await backend.register(id: id, device)
        return id
    }

    // MARK: News

    private func hubClient(_ connection: HubConnectionString) -> HubClient {
        HubClient(hubOverride ?? connection, hub: configuration.hubName, client: client, time: time)
    }

    /// Brings the hub's registration to the wanted categories; an empty set removes it.
    func subscribeToNews(force: Bool) async throws {
        try await inQueue { try await $0.subscribeNow(force: force) }
    }

    /// To be called in the queue.
    func subscribeNow(force: Bool) async throws {
        guard let handle = state.handle else { return }
        let wanted = state.wantedCategories
        if wanted.isEmpty {
            guard let subscription = state.subscription, let connection = configuration.hub else { return }
            if let id = subscription.id.flatMap({ RegistrationID($0) }) {
                try await hubClient(connection).delete(id)
            }
            state.subscription = nil
            try save()
            return
        }
        if !force, let done = state.subscription, done.handle == handle, done.categories == wanted,
            done.locale == state.wantedLocale,
            isFresh(done.at)
        {
            return
        }
        guard let connection = configuration.hub else {
            throw DaemonFailure("No hub is configured: set a Listen connection string.")
        }
        let hub = hubClient(connection)
        var tags: [HubTag] = []
        for category in wanted { tags.append(try HubTag(category)) }
        let content = RegistrationContent(
            handle: configuration.platform == .browser
                ? try SubscriptionJSON.read(handle, path: "handle")
                : try PlatformHandle(handle, platform: configuration.platform),
            tags: tags,
            template: NewsTemplate.make(configuration.platform, locale: state.wantedLocale)
        )
        var id = state.subscription?.id.flatMap { RegistrationID($0) }
        do {
            if let id { _ = try await hub.put(id, content) }
        } catch let error as HubError where error.code == .gone { id = nil }
        if id == nil {
            let fresh = try await hub.newRegistrationID()
            _ = try await hub.put(fresh, content)
            id = fresh
        }
        state.subscription = .init(
            id: id?.text,
            handle: handle,
            categories: wanted,
            locale: state.wantedLocale,
            at: time.now
        )
        try save()
        emit(
            DeviceEvent(
                "subscribed",
                [
                    "categories": .array(wanted.map { .string($0) }),
                    "registrationId": .string(id?.text ?? ""), "title": "Notification", "text": "Subscribed",
                ]
            )
        )
    }

    func sendHubClient() throws -> HubClient {
        guard let connection = configuration.sendHub ?? configuration.hub else {
            throw DaemonFailure("No hub is configured: set a connection string with Send.")
        }
        return hubClient(connection)
    }
}

/// The breaking-news templates, one for each platform; the names follow the tutorial's `simpleAPNSTemplate`.
enum NewsTemplate {
    /// - Parameter locale: `English` makes the template read `News_English` instead of `messageParam`.
    static func make(_ platform: Platform, locale: String?) -> RegistrationTemplate {
        let value = "$(\(locale.map { "News_" + $0 } ?? "messageParam"))"
        switch platform {
        case .apns:
            return RegistrationTemplate(
                name: "simpleAPNSTemplate",
                body: "{\"aps\":{\"alert\":\"\(value)\"}}",
                expiry: "0"
            )
        case .gcm:
            return RegistrationTemplate(
                name: "simpleGCMTemplate",
                body: "{\"data\":{\"message\":\"\(value)\"}}"
            )
        case .fcmV1:
            return RegistrationTemplate(
                name: "simpleFCMTemplate",
                body: "{\"message\":{\"data\":{\"message\":\"\(value)\"}}}"
            )
        case .wns:
            return RegistrationTemplate(
                name: "simpleWNSTemplate",
                body:
                    "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">\(value)</text></binding></visual></toast>",
                headers: [.init("X-WNS-Type", "wns/toast")]
            )
        case .mpns:
            return RegistrationTemplate(
                name: "simpleMPNSTemplate",
                body:
                    "<wp:Notification xmlns:wp=\"WPNotification\"><wp:Toast><wp:Text1>\(value)</wp:Text1></wp:Toast></wp:Notification>",
                headers: [.init("X-WindowsPhone-Target", "toast"), .init("X-NotificationClass", "2")]
            )
        case .adm:
            return RegistrationTemplate(
                name: "simpleADMTemplate",
                body: "{\"data\":{\"message\":\"\(value)\"}}"
            )
        case .baidu:
            return RegistrationTemplate(
                name: "simpleBaiduTemplate",
                body: "{\"title\":\"News\",\"description\":\"\(value)\"}"
            )
        case .browser, .xiaomi:
            return RegistrationTemplate(name: "simpleTemplate", body: "{\"message\":\"\(value)\"}")
        }
    }
}

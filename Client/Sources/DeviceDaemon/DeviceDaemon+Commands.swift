import BackendClient
import HTTPMessages
import HubClient
package import JSONBytes
import TidingsModels

/// What the remote control asks of a daemon.
extension DeviceDaemon {
    /// One line of a `send`: what was asked, and how it ended.
    public struct SendResult: Sendable, Equatable {
        /// The platform or category.
        public var target: String
        /// Nil when no answer came.
        public var status: Int?
        /// What the server said.
        public var reason: String
        /// True for 200 and 201.
        public var isSuccess: Bool
    }

    /// Replaces the set of categories; an empty one removes the registration. What is wanted is stored first.
    public func subscribe(categories: [String], locale: String? = nil) async throws {
        for category in categories { _ = try HubTag(category) }
        state.wantedCategories = categories
        state.wantedLocale = locale
        try save()
        _ = try await currentHandle()
        try await subscribeToNews(force: true)
        if categories.isEmpty { emit(DeviceEvent("unsubscribed")) }
    }

    /// The categories that are wanted, and those that the hub confirmed.
    public func categories() -> (wanted: [String], confirmed: [String]) {
        (state.wantedCategories, state.subscription?.categories ?? [])
    }

    /// Sends a text to a user: one request for each platform, all of them tried.
    public func send(to user: String, platforms: [String], text: String) async throws -> [SendResult] {
        let backend = try registeredBackend()
        var results: [SendResult] = []
        for platform in platforms {
            results.append(
                await Self.result(platform) {
                    try await backend.notify(platform: platform, user: user, text: text)
                }
            )
        }
        return results
    }

    /// Sends `Breaking <category> News : <text>` to each category, straight to the hub.
    public func send(categories: [String], text: String) async throws -> [SendResult] {
        let hub = try sendHubClient()
        var results: [SendResult] = []
        for category in categories {
            let values = JSONValue.object(["messageParam": .string("Breaking \(category) News : \(text)")])
            do {
                let tag = try HubTag(category)
                let id = try await hub.send(
                    .template(values.text, headers: [.init("apns-push-type", "alert")]),
                    tags: tag.text
                )
                results.append(
                    SendResult(target: category, status: 201, reason: id?.text ?? "accepted", isSuccess: true)
                )
            } catch let error as HubError {
                results.append(
                    SendResult(
                        target: category,
                        status: error.httpStatus,
                        reason: error.message,
                        isSuccess: false
                    )
                )
            }
        }
        return results
    }

    /// Sends a secret to a user; nil sends to oneself.
    public func sendSecure(_ payload: String, to user: String?) async throws -> SendResult {
        let backend = try registeredBackend()
        return await Self.result("secure") { try await backend.sendSecure(payload, to: user) }
    }

    /// Sends a picture or sound with a message.
    public func sendRich(
        _ content: [UInt8],
        type: String,
        message: String,
        to user: String?
    ) async throws -> SendResult {
        let backend = try registeredBackend()
        return await Self.result("rich") {
            try await backend.sendRich(content, type: type, message: message, to: user)
        }
    }

    /// Sends a URL, a coupon or a team's own kind of content with a message.
    public func sendRich(
        kind: String,
        content: String,
        message: String,
        to user: String?
    ) async throws -> SendResult {
        let backend = try registeredBackend()
        return await Self.result(kind) {
            try await backend.sendRich(kind: kind, content: content, message: message, to: user)
        }
    }

    private func registeredBackend() throws -> BackendClient {
        guard state.login != nil, state.registration != nil, let backend = backendClient() else {
            throw DaemonFailure("Not registered: log in first.")
        }
        return backend
    }

    private static func result(_ target: String, _ body: () async throws -> Void) async -> SendResult {
        do {
            try await body()
            return SendResult(target: target, status: 200, reason: "OK", isSuccess: true)
        } catch let error as BackendError {
            return SendResult(target: target, status: error.status, reason: error.message, isSuccess: false)
        } catch {
            return SendResult(
                target: target,
                status: nil,
                reason: String(describing: error),
                isSuccess: false
            )
        }
    }

    /// The pushes received so far; those of another user are not shown.
    package func inboxEntries() async throws -> [InboxEntry] {
        try await inbox.all().filter { belongsToCurrentUser($0) }
    }

    /// True for what came for whoever is logged in, or while nobody was.
    func belongsToCurrentUser(_ entry: InboxEntry) -> Bool {
        entry.user == nil || entry.user == state.login?.user
    }

    /// What is behind a notification: its own picture or sound (a file), URL or coupon, or its text.
    package func open(_ id: Int64, action: String?) async throws -> JSONObject {
        if let action, action != Self.richAction {
            throw DaemonFailure(
                "The action '\(action)' is not known; a rich notification has \(Self.richAction)."
            )
        }
        guard let entry = try await inbox.entry(id), belongsToCurrentUser(entry) else {
            throw DaemonFailure("The inbox has no notification \(id).")
        }
        var object = JSONObject(["id": .number(id), "text": .string(entry.text ?? "")])
        if let type = entry.richType { object["richType"] = .string(type) }
        if let file = entry.file { object["file"] = .string(file) }
        if let content = entry.content {
            object[entry.richType == "url" ? "url" : entry.richType == "coupon" ? "coupon" : "content"] =
                .string(content)
        }
        if let type = entry.contentType { object["contentType"] = .string(type) }
        if action != nil, entry.file == nil, entry.content == nil {
            throw DaemonFailure("The notification \(id) has no further content.")
        }
        return object
    }

    /// Everything that `status` prints.
    package func status() -> JSONObject {
        var object = JSONObject(["connected": .bool(connectedSince != nil)])
        if let connectedSince {
            object["since"] = .string(connectedSince.description)
        } else {
            object["disconnectedSince"] = .string(disconnected.since.description)
            object["reason"] = .string(disconnected.reason)
        }
        object["platform"] = .string(configuration.platform.appName)
        object["gateway"] = .string(configuration.gateway.origin)
        if let backend = configuration.backend { object["backend"] = .string(backend.origin) }
        object["PushToUserInstallationId"] = .string(state.installationID)
        if let handle = state.handle { object["handle"] = .string(handle) }
        if let login = state.login { object["user"] = .string(login.user) }
        if let registration = state.registration {
            object["RegistrationId"] = .string(registration.id)
            object["registeredAt"] = .string(registration.at.description)
        }
        object["BreakingNewsCategories"] = .object([
            "wanted": .array(state.wantedCategories.map { .string($0) }),
            "confirmed": .array((state.subscription?.categories ?? []).map { .string($0) }),
        ])
        object["state"] = .string(configuration.isBackground ? "background" : "active")
        return object
    }
}

import BackendClient
import DeviceLink
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsModels

/// What the user sees of a push. Each path marks the entry as shown and then emits exactly one event.
extension DeviceDaemon {
    /// The category and the action of a rich local notification, as the tutorial names them.
    package static let richCategory = "richPush", richAction = "richPushMore"
    private static let loginNotice = "There is a new message for you. Log in to read it."

    func presentContent(_ entry: InboxEntry, _ content: PushContent) async throws {
        var entry = entry
        switch content {
        case .text(let title, let body):
            entry.text = body
            try await finish(
                entry,
                DeviceEvent(
                    "notification",
                    fields: fields(
                        entry,
                        "text",
                        ["title": .string(title ?? "Notification"), "text": .string(body)]
                    )
                )
            )
        case .silent: try await finish(entry, DeviceEvent("silent", fields: fields(entry, "silent", [:])))
        case .unreadable(let reason):
            try await finish(
                entry,
                DeviceEvent("unreadable", fields: fields(entry, "unreadable", ["reason": .string(reason)]))
            )
        case .secure(let id): try await presentSecure(entry, id)
        case .rich(let id, let message, let type): try await presentRich(entry, id, message, type)
        }
    }

    private func fields(
        _ entry: InboxEntry,
        _ kind: String,
        _ more: KeyValuePairs<String, JSONValue>
    ) -> JSONObject {
        var object = JSONObject([
            "id": .number(entry.id), "kind": .string(kind),
            "platform": .string(configuration.platform.appName),
        ])
        for (name, value) in more { object[name] = value }
        return object
    }

    private func finish(_ entry: InboxEntry, _ event: DeviceEvent) async throws {
        guard belongsToCurrentUser(entry) else { return try await keepForItsUser(entry) }
        var entry = entry
        // Whatever it waited for is over: it would else be shown again at the next login.
        entry.awaitsLogin = false
        try await inbox.markShown(entry)
        log.debug(
            "push_shown",
            ["version": .string(entry.notification.version)],
            trace: entry.notification.trace
        )
        emit(event)
    }

    /// The user changed while the push was being fetched: what it says is shown to its own user alone.
    private func keepForItsUser(_ entry: InboxEntry) async throws {
        var entry = entry
        entry.awaitsLogin = true
        try await inbox.markShown(entry)
        emit(DeviceEvent("notice", fields: fields(entry, "other_user", ["text": .string(Self.loginNotice)])))
    }

    // MARK: Secure

    private func presentSecure(_ entry: InboxEntry, _ id: Int32) async throws {
        var entry = entry
        switch await fetch(id) {
        case .success(.item(let item)):
            entry.text = item.payload
            try await finish(
                entry,
                DeviceEvent(
                    "notification",
                    fields: fields(
                        entry,
                        "secure",
                        ["secureId": .number(id), "title": "Notification", "text": .string(item.payload)]
                    )
                )
            )
        case .success(.content):
            try await fetchFailed(
                entry,
                "secure",
                id,
                BackendError(status: 200, message: "The item is not a secure one.")
            )
        case .failure(let error) where error.needsLogin: try await askForLogin(entry, "secure", id, error)
        case .failure(let error): try await fetchFailed(entry, "secure", id, error)
        }
    }

    private func askForLogin(
        _ entry: InboxEntry,
        _ kind: String,
        _ id: Int32,
        _ error: BackendError
    ) async throws {
        var entry = entry
        // After a login the content is still missing: the notice stands, and stays the push's one event.
        let isRepeat = entry.awaitsLogin
        entry.awaitsLogin = true
        entry.text = Self.loginNotice
        try await inbox.markShown(entry)
        if isRepeat { return }
        var object = fields(
            entry,
            kind,
            ["itemId": .number(id), "text": .string(Self.loginNotice), "reason": .string(error.message)]
        )
        if let status = error.status { object["status"] = .number(status) }
        emit(DeviceEvent("notice", fields: object))
    }

    private func fetchFailed(
        _ entry: InboxEntry,
        _ kind: String,
        _ id: Int32,
        _ error: BackendError
    ) async throws {
        var object = fields(entry, kind, ["itemId": .number(id), "reason": .string(error.message)])
        if let status = error.status { object["status"] = .number(status) }
        try await finish(entry, DeviceEvent("fetch_failed", fields: object))
    }

    private func fetch(_ id: Int32) async -> Result<FetchedContent, BackendError> {
        guard let backend = backendClient() else {
            return .failure(BackendError(status: nil, message: "No app back end is configured."))
        }
        guard state.login != nil else {
            return .failure(BackendError(status: 401, message: "Nobody is logged in."))
        }
        do { return .success(try await backend.content(id: id)) } catch let error as BackendError {
            return .failure(error)
        } catch {
            return .failure(BackendError(status: nil, message: String(describing: error)))
        }
    }

    // MARK: Rich

    private func presentRich(_ entry: InboxEntry, _ id: Int32, _ message: String, _ type: String) async throws
    {
        var entry = entry
        entry.richType = type
        guard ["img", "url", "sound", "coupon"].contains(type) else {
            entry.text = message
            return try await finish(
                entry,
                DeviceEvent(
                    "notification",
                    fields: fields(
                        entry,
                        "rich",
                        [
                            "richId": .number(id), "richType": .string(type), "text": .string(message),
                            "reason": "this richType is not known here",
                        ]
                    )
                )
            )
        }
        switch await fetch(id) {
        case .success(let content):
            try store(content, in: &entry)
            entry.text = message
            try await showRich(entry, id, message, type)
        case .failure(let error) where error.needsLogin: try await askForLogin(entry, "rich", id, error)
        case .failure(let error): try await fetchFailed(entry, "rich", id, error)
        }
    }

    /// Each notification keeps its own file, so that a second picture never replaces the first.
    private func store(_ content: FetchedContent, in entry: inout InboxEntry) throws {
        switch content {
        case .item(let item): entry.content = item.payload
        case .content(let bytes, let type):
            entry.contentType = type
            if type.hasPrefix("text/") {
                entry.content = String(decoding: bytes, as: UTF8.self)
            } else {
                try StateFolder.makeFolder(configuration.statePath + "/files")
                let path = configuration.statePath + "/files/\(entry.id).\(Self.fileExtension(type))"
                try Files.replace(path, with: bytes)
                entry.file = path
            }
        }
    }

    private static func fileExtension(_ type: String) -> String {
        let media = type.prefix { $0 != ";" }.lowercased()
        return switch media {
        case "image/png": "png"
        case "image/jpeg": "jpg"
        case "image/gif": "gif"
        case "image/webp": "webp"
        case "audio/mpeg": "mp3"
        case "audio/ogg": "ogg"
        case "audio/wav", "audio/x-wav", "audio/wave": "wav"
        default: "bin"
        }
    }

    private func showRich(_ entry: InboxEntry, _ id: Int32, _ message: String, _ type: String) async throws {
        var object = fields(
            entry,
            "rich",
            [
                "richId": .number(id), "richType": .string(type), "title": "Notification",
                "text": .string(message),
            ]
        )
        guard configuration.isBackground else {
            object["actions"] = .array(["OK", "More"])
            return try await finish(entry, DeviceEvent("alert", fields: object))
        }
        if configuration.localNotificationDelay > .zero {
            let shownAt = time.now + configuration.localNotificationDelay
            emit(DeviceEvent("fetched", ["id": .number(entry.id), "shownAt": .string(shownAt.description)]))
            try await time.sleep(until: shownAt)
        }
        object["category"] = .string(Self.richCategory)
        object["actions"] = .array([.object(["id": .string(Self.richAction), "title": "More"])])
        try await finish(entry, DeviceEvent("local_notification", fields: object))
    }

    /// What could not be fetched before: fetched now, and shown once. Only what came for this user.
    func fetchAwaiting() async throws { try await inQueue { try await $0.showAwaiting() } }

    private func showAwaiting() async throws {
        for entry in try await inbox.awaitingLogin()
        where belongsToCurrentUser(entry) {
            try await presentContent(entry, PushContent(entry.notification))
        }
    }
}

import HTTPMessages
import HTTPServing
import HubAPI
import TidingsModels
import XMLBytes

/// `/mpns/…`: Microsoft's service for Windows phones (push services reference, section 4.1). The channels are unauthenticated ones:
/// whoever knows one may send to it.
struct MPNSDoor: Sendable {
    let time: any TimeSource
    /// Whether the device of a channel is connected now.
    let isConnected: @Sendable (PlatformHandle) async -> Bool

    private enum Kind: String {
        case tile, toast, raw

        /// `X-WindowsPhone-Target`; nil for a value that is none.
        init?(target: String?) {
            switch target?.lowercased() {
            case "toast": self = .toast
            case "token", "tile": self = .tile
            case nil, "raw": self = .raw
            default: return nil
            }
        }

        /// At once, within 450 s, within 900 s. Raw has the numbers that stand behind each of its own, too.
        func allows(_ notificationClass: Int) -> Bool {
            switch self {
            case .tile: [1, 11, 21].contains(notificationClass)
            case .toast: [2, 12, 22].contains(notificationClass)
            case .raw:
                (3...10).contains(notificationClass) || (13...20).contains(notificationClass)
                    || (23...31).contains(notificationClass)
            }
        }
    }

    /// The three words of an answer; nil leaves the field out.
    private struct Words {
        var notification: String?
        var device: String?
        var subscription: String?

        static let expired = Words(notification: "Dropped", device: "Disconnected", subscription: "Expired")
    }

    private static let bodyByteCountMax = 3072
    private static let rawByteCountMax = 1024
    /// The original's queue has no documented life; ours is a day.
    private static let storage = Duration.seconds(86400)

    func respond(to request: HTTPRequest, post: PostMessage) async -> HTTPResponse {
        var response = await send(request, post)
        // The id comes back with every answer.
        if let id = request.fields["X-MessageID"], UUIDText.isUUID(id) { response.fields["X-MessageID"] = id }
        return response
    }

    private func answer(_ status: HTTPStatus, _ words: Words = Words(), _ text: String = "") -> HTTPResponse {
        var fields: HTTPFields = [:]
        fields["X-NotificationStatus"] = words.notification
        fields["X-DeviceConnectionStatus"] = words.device
        fields["X-SubscriptionStatus"] = words.subscription
        if status.code == 405 { fields["Allow"] = "POST" }
        if !text.isEmpty { fields["Content-Type"] = "text/plain; charset=utf-8" }
        return HTTPResponse(status, fields, text: text)
    }

    private func send(_ request: HTTPRequest, _ post: PostMessage) async -> HTTPResponse {
        func refusal(_ text: String) -> HTTPResponse { answer(400, Words(), text) }
        guard request.method == "POST" else { return answer(405, Words(), "Only POST is supported.") }
        guard let kind = Kind(target: request.fields["X-WindowsPhone-Target"]) else {
            return refusal("X-WindowsPhone-Target must be toast, token (for a tile), or absent for raw.")
        }
        if let text = request.fields["X-NotificationClass"] {
            guard let number = Int(text), kind.allows(number) else {
                return refusal(
                    "X-NotificationClass '\(text)' is no class of a \(kind.rawValue) notification."
                )
            }
        }
        if let id = request.fields["X-MessageID"], !UUIDText.isUUID(id) {
            return refusal("X-MessageID is not a UUID.")
        }
        let type = request.fields["Content-Type"]?.lowercased() ?? ""
        guard kind == .raw || type.hasPrefix("text/xml") else {
            return refusal("Content-Type must be text/xml for a \(kind.rawValue) notification.")
        }
        let countMax = kind == .raw ? Self.rawByteCountMax : Self.bodyByteCountMax
        guard let body = try? await request.body.collect(upTo: countMax) else {
            return refusal("A \(kind.rawValue) notification has at most \(countMax) bytes.")
        }
        guard !body.isEmpty else { return refusal("The notification is empty.") }
        var collapseKey: String?
        if kind != .raw {
            guard let root = try? XMLElement(parsing: body),
                root.name == .init("Notification", in: "WPNotification"),
                let content = root.elements.first,
                content.name == .init(kind == .tile ? "Tile" : "Toast", in: "WPNotification")
            else {
                return refusal("The body is not wp:Notification with a \(kind.rawValue).")
            }
            // A phone shows the newest state of each tile.
            if kind == .tile { collapseKey = "tile|" + (content.attributes[.init("Id")] ?? "") }
        }
        return await deliver(request, kind, body, collapseKey, post)
    }

    private func deliver(
        _ request: HTTPRequest,
        _ kind: Kind,
        _ body: [UInt8],
        _ collapseKey: String?,
        _ post: PostMessage
    ) async -> HTTPResponse {
        var headers: [String: String] = [:]
        if kind != .raw { headers["X-WindowsPhone-Target"] = kind == .tile ? "token" : "toast" }
        // A channel is known by its path, byte for byte; the host is whatever name leads here.
        let handle = PlatformHandle(unchecked: request.target.raw, platform: .mpns)
        let result: PostResult
        do {
            result = try await post(
                GatewayMessage(
                    handle: handle,
                    data: body,
                    headers: headers,
                    expires: time.now + Self.storage,
                    collapseKey: collapseKey,
                    deliveryID: request.fields[HubHeader.deliveryID]
                )
            )
        } catch { return answer(503, Words(), "The mailbox failed.") }
        switch result {
        case .accepted, .repeated: return answer(200, await words("Received", handle))
        case .dropped: return answer(200, await words("Suppressed", handle))
        case .full: return answer(200, await words("QueueFull", handle))
        case .unknownHandle, .expiredHandle: return answer(404, .expired)
        case .faulted(let fault):
            var response = answer(
                fault.status,
                faultWords(fault.status.code),
                fault.reason ?? "This answer was asked for."
            )
            response.fields["Retry-After"] = fault.retryAfter.map { String($0) }
            return response
        }
    }

    private func words(_ notification: String, _ handle: PlatformHandle) async -> Words {
        Words(
            notification: notification,
            device: await isConnected(handle) ? "Connected" : "TempDisconnected",
            subscription: "Active"
        )
    }

    /// What the service says beside a status.
    private func faultWords(_ status: Int) -> Words {
        switch status {
        case 404: .expired
        case 406: Words(notification: "Dropped", device: "Connected", subscription: "Active")
        case 412: Words(notification: "Dropped", device: "Inactive")
        default: Words()
        }
    }
}

import HTTPMessages
import HubAPI
import JSONBytes
import OutboundHTTP
public import TidingsModels

/// Sends and what became of them.
extension HubClient {
    /// Sends to a tag expression; empty means everyone. 200 and 201 are both success.
    ///
    /// - Returns: The id for ``details(_:)``; nil from a hub tier that tells none.
    public func send(_ notification: HubNotification, tags: String) async throws -> NotificationID? {
        Self.id(of: try await post(notification, tags, query: ""))
    }

    /// Sends a native notification to one handle, which needs no registration.
    public func send(
        _ notification: HubNotification,
        to handle: PlatformHandle
    ) async throws -> NotificationID? {
        var fields: HTTPFields = [HubHeader.deviceHandle: handle.text]
        if let keys = handle.keys { (fields["P256DH"], fields["Auth"]) = (keys.p256dh, keys.auth) }
        return Self.id(of: try await post(notification, "", query: "&direct", more: fields))
    }

    /// Sends a native notification to up to 1,000 handles of its platform.
    public func send(
        _ notification: HubNotification,
        to handles: [PlatformHandle]
    ) async throws -> NotificationID? {
        let devices = JSONValue.array(handles.map { .string(Self.batchText($0)) })
        func part(_ name: String, _ type: String, _ body: [UInt8]) -> MultipartMixed.Part {
            let disposition = "inline; name=\(name)"
            return .init(fields: ["Content-Type": type, "Content-Disposition": disposition], body: body)
        }
        let batch = MultipartMixed(parts: [
            part("notification", Self.contentType(notification), notification.body),
            part("devices", "application/json", devices.serialized()),
        ])
        let boundary = Self.boundary(for: notification.body)
        var fields = Self.fields(notification, "")
        fields["Content-Type"] = "multipart/mixed; boundary=\"\(boundary)\""
        return Self.id(
            of: try await send(
                "POST",
                .batch(hub: hub),
                query: "&direct",
                fields: fields,
                bytes: batch.bytes(boundary: boundary),
                success: [200, 201]
            )
        )
    }

    private static func batchText(_ handle: PlatformHandle) -> String {
        guard let keys = handle.keys else { return handle.text }
        return JSONValue.object([
            "endpoint": .string(handle.text), "p256dh": .string(keys.p256dh), "auth": .string(keys.auth),
        ]).text
    }

    /// One that the payload does not hold; JSON of the devices holds no line end.
    private static func boundary(for payload: [UInt8]) -> String {
        var boundary = "tidings-batch"
        while payload.firstRange(of: "--\(boundary)".utf8) != nil {
            boundary += "-\(UInt32.random(in: .min ... .max))"
        }
        return boundary
    }

    /// Sends at a later moment, up to seven days ahead; a past one means at once. ``cancel(_:)`` takes it back.
    ///
    /// - Returns: The id for ``details(_:)``; nil from a hub that tells none.
    public func schedule(
        _ notification: HubNotification,
        tags: String,
        at moment: Timestamp
    ) async throws -> NotificationID? {
        // Whole seconds without a zone, as every SDK writes it.
        let text = String(moment.description.prefix(19))
        return Self.id(of: try await post(notification, tags, query: "", scheduleTime: text))
    }

    /// Takes a scheduled send back.
    /// - Throws: ``HubError`` `.notFound` when its time has come.
    public func cancel(_ id: NotificationID) async throws {
        _ = try await send("DELETE", .scheduledMessage(hub: hub, id: id.text), success: [200])
    }

    private static func id(of answer: HTTPAnswer) -> NotificationID? {
        let last = answer.fields["Location"]?.prefix { $0 != "?" }.split(separator: "/").last.map(String.init)
        return last.flatMap { NotificationID($0) }
    }

    /// Sends to at most 10 of the matching registrations and waits until the push services have answered.
    public func testSend(_ notification: HubNotification, tags: String) async throws -> NotificationOutcome {
        let answer = try await post(notification, tags, query: "&test", timeout: Self.testTimeout)
        return try NotificationOutcomeXML.read(answer.body)
    }

    /// Tells what a send would do, without sending: whom it reaches, why not others, and with which payload. An extension of ours.
    public func explain(_ notification: HubNotification, tags: String) async throws -> SendExplanation {
        try SendExplanationJSON.read(try await post(notification, tags, query: "&explain").body)
    }

    private func post(
        _ notification: HubNotification,
        _ tags: String,
        query: String,
        timeout: Duration? = nil,
        scheduleTime: String? = nil,
        more: HTTPFields = [:]
    ) async throws -> HTTPAnswer {
        var fields = Self.fields(notification, tags)
        for line in more.lines { fields.append(line.name, line.value) }
        if let scheduleTime { fields[HubHeader.scheduleTime] = scheduleTime }
        return try await send(
            "POST",
            scheduleTime == nil ? .messages(hub: hub) : .scheduledMessages(hub: hub),
            query: query,
            fields: fields,
            bytes: notification.body,
            success: [200, 201],
            timeout: timeout
        )
    }

    private static func fields(_ notification: HubNotification, _ tags: String) -> HTTPFields {
        var fields: HTTPFields = [
            HubHeader.format: notification.format.text, "Content-Type": contentType(notification),
        ]
        if !tags.isEmpty { fields[HubHeader.tags] = tags }
        for header in notification.headers { fields[header.name] = header.value }
        return fields
    }

    private static func contentType(_ notification: HubNotification) -> String {
        let isRaw = notification.headers.contains {
            $0.name.lowercased() == "x-wns-type" && $0.value.lowercased() == "wns/raw"
        }
        switch notification.format {
        case .native(.wns): return isRaw ? "application/octet-stream" : "application/xml"
        case .native(.mpns): return "application/xml;charset=utf-8"
        case .native, .template: return "application/json;charset=utf-8"
        }
    }

    /// What became of a send.
    public func details(_ id: NotificationID) async throws -> NotificationDetails {
        let answer = try await send("GET", .message(hub: hub, id: id.text), success: [200])
        var details = try NotificationDetailsXML.read(answer.body)
        details.trace = answer.fields[HubHeader.traceID].flatMap { TraceID($0) }
        return details
    }

    /// What became of a send once it is final, or its details of the last moment when `limit` has passed.
    ///
    /// The protocol's only way to learn the state is to ask again: `interval` is the pause between two questions.
    public func finalDetails(
        _ id: NotificationID,
        within limit: Duration = .seconds(60),
        every interval: Duration = .milliseconds(100)
    ) async throws -> NotificationDetails {
        let deadline = ContinuousClock.now + limit
        while true {
            let details = try await details(id)
            if details.state.isFinal || ContinuousClock.now >= deadline { return details }
            try await Task.sleep(for: interval)
        }
    }
}

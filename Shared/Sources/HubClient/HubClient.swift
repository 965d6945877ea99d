import HTTPMessages
import HubAPI
import JSONBytes
package import OutboundHTTP
import PushCredentials
public import TidingsModels

/// A client of one hub, ours or Azure's, by connection string.
///
/// Every method throws ``HubError`` with the hub's own explanation, or `.unavailable` when no answer came.
public struct HubClient: Sendable {
    private let connection: HubConnectionString
    /// The hub's name.
    public let hub: String
    private let client: HTTPClient
    private let time: any TimeSource
    private static let tokenLife = Duration.seconds(20 * 60)
    /// A test send is answered when the push services have answered, and each of them has 30 seconds for a token and as many
    /// for the push.
    private static let testTimeout = Duration.seconds(90)

    package init(_ connection: HubConnectionString, hub: String, client: HTTPClient, time: any TimeSource) {
        self.connection = connection
        self.hub = hub
        self.client = client
        self.time = time
    }

    // MARK: Registrations

    /// Asks for an id to use with ``put(_:_:ifMatch:)``.
    public func newRegistrationID() async throws -> RegistrationID {
        let answer = try await send("POST", .registrationIDs(hub: hub), success: [201])
        let location = answer.fields["Location"] ?? answer.fields["Content-Location"] ?? ""
        let last = location.prefix { $0 != "?" }.split(separator: "/").last.map(String.init) ?? ""
        guard let id = RegistrationID(last) else {
            throw HubError(.badGateway, "The hub's Location '\(location)' holds no registration id.")
        }
        return id
    }

    /// Creates a registration with an id of the hub's choice.
    public func create(_ content: RegistrationContent) async throws -> Registration {
        try RegistrationXML.readEntry(
            try await send(
                "POST",
                .registrations(hub: hub),
                body: RegistrationXML.request(content, id: nil),
                success: [200, 201]
            ).body
        )
    }

    /// Creates or replaces a registration. `ifMatch` is an ETag or `*`.
    public func put(
        _ id: RegistrationID,
        _ content: RegistrationContent,
        ifMatch: String? = nil
    ) async throws -> Registration {
        let answer = try await send(
            "PUT",
            .registration(hub: hub, id: id.text),
            fields: ifMatch.map { ["If-Match": $0] } ?? [:],
            body: RegistrationXML.request(content, id: id),
            success: [200, 201]
        )
        return try RegistrationXML.readEntry(answer.body)
    }

    /// One registration; nil when there is none.
    public func registration(_ id: RegistrationID) async throws -> Registration? {
        do {
            return try RegistrationXML.readEntry(
                try await send("GET", .registration(hub: hub, id: id.text), success: [200]).body
            )
        } catch let error as HubError where error.code == .notFound { return nil }
    }

    /// Deletes a registration; false when there was none.
    @discardableResult
    public func delete(_ id: RegistrationID) async throws -> Bool {
        do {
            _ = try await send(
                "DELETE",
                .registration(hub: hub, id: id.text),
                fields: ["If-Match": "*"],
                success: [200, 204]
            )
            return true
        } catch let error as HubError where error.code == .notFound { return false }
    }

    /// Every registration of a handle, up to `countMax`. Needs Listen.
    public func registrations(handle: String, countMax: Int = 100) async throws -> [Registration] {
        let quoted = PercentEncoding.encode(
            "ChannelUri eq '"
                + handle.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
        )
        return try await list(.registrations(hub: hub), query: "&$filter=\(quoted)", countMax: countMax)
    }

    /// Every registration with a tag, up to `countMax`. Needs Manage.
    public func registrations(tag: HubTag, countMax: Int = 100) async throws -> [Registration] {
        try await list(.taggedRegistrations(hub: hub, tag: tag.text), query: "", countMax: countMax)
    }

    /// Every registration, up to `countMax`. Needs Manage.
    public func registrations(countMax: Int = 100) async throws -> [Registration] {
        try await list(.registrations(hub: hub), query: "", countMax: countMax)
    }

    private func list(_ route: HubRoute, query: String, countMax: Int) async throws -> [Registration] {
        var found: [Registration] = []
        var continuation = ""
        while found.count < countMax {
            let page = "&$top=\(min(100, countMax - found.count))"
            let answer = try await send("GET", route, query: query + page + continuation, success: [200])
            found += try RegistrationXML.readFeed(answer.body)
            guard let token = answer.fields[HubHeader.continuation] else { break }
            continuation = "&continuationtoken=" + token
        }
        return found
    }

    // MARK: Sends

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

    // MARK: Requests

    private func send(
        _ method: String,
        _ route: HubRoute,
        query: String = "",
        fields: HTTPFields = [:],
        body: String,
        success: Set<Int>
    ) async throws -> HTTPAnswer {
        var fields = fields
        fields["Content-Type"] = "application/atom+xml;type=entry;charset=utf-8"
        return try await send(
            method,
            route,
            query: query,
            fields: fields,
            bytes: Array(body.utf8),
            success: success
        )
    }

    private func send(
        _ method: String,
        _ route: HubRoute,
        query: String = "",
        fields: HTTPFields = [:],
        bytes: [UInt8]? = nil,
        success: Set<Int>,
        timeout: Duration? = nil
    ) async throws -> HTTPAnswer {
        let address = connection.endpoint.origin + route.path
        guard let url = HTTPURL("\(address)?api-version=\(hubAPIVersion)\(query)") else {
            throw HubError(.badRequest, "The hub's address \(address) is not a URL.")
        }
        var fields = fields
        fields["Authorization"] = SharedAccessSignature.make(
            resource: address,
            keyName: connection.keyName,
            key: connection.key,
            expires: time.now + Self.tokenLife
        )
        if let trace = TraceID.current { fields[HubHeader.traceParent] = trace.parentHeader }
        var request = OutboundRequest(method, url, fields: fields, body: bytes)
        if let timeout { request.timeout = timeout }
        let answer: HTTPAnswer
        do { answer = try await client.send(request) } catch {
            throw HubError(.unavailable, "The hub at \(connection.endpoint.origin) gave no answer: \(error)")
        }
        guard success.contains(answer.status.code) else { throw Self.error(answer) }
        return answer
    }

    private static func error(_ answer: HTTPAnswer) -> HubError {
        let code =
            HubError.Code.allCases.first { HubError($0, "").httpStatus == answer.status.code } ?? .badGateway
        let detail = HubErrorXML.detail(answer.body)
        return HubError(
            code,
            detail.isEmpty ? "The hub answered \(answer.status.code) \(answer.status.reasonPhrase)." : detail,
            retryAfter: answer.retryAfterSeconds.map { .seconds($0) }
        )
    }
}

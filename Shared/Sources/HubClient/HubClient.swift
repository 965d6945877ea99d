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
    static let testTimeout = Duration.seconds(90)

    package init(_ connection: HubConnectionString, hub: String, client: HTTPClient, time: any TimeSource) {
        self.connection = connection
        self.hub = hub
        self.client = client
        self.time = time
    }

    /// A connection string to the same server with another key.
    package func connectionString(keyName: String, key: String) -> String {
        HubConnectionString(endpoint: connection.endpoint, keyName: keyName, key: key).text
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
                + ASCII.replacing(handle, "'", with: "''") + "'"
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

    // MARK: Requests

    func send(
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

    func send(
        _ method: String,
        _ route: HubRoute,
        query: String = "",
        fields: HTTPFields = [:],
        bytes: [UInt8]? = nil,
        success: Set<Int>,
        timeout: Duration? = nil
    ) async throws -> HTTPAnswer {
        try await send(
            method,
            path: route.path,
            query: "?api-version=\(hubAPIVersion)\(query)",
            fields: fields,
            bytes: bytes,
            success: success,
            timeout: timeout
        )
    }

    func send(
        _ method: String,
        path: String,
        query: String = "",
        fields: HTTPFields,
        bytes: [UInt8]?,
        success: Set<Int>,
        timeout: Duration?
    ) async throws -> HTTPAnswer {
        let address = connection.endpoint.origin + path
        guard let url = HTTPURL(address + query) else {
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
        return try await transfer(request, success)
    }

    func transfer(_ request: OutboundRequest, _ success: Set<Int>) async throws -> HTTPAnswer {
        let answer: HTTPAnswer
        do { answer = try await client.send(request) } catch {
            throw HubError(.unavailable, "The hub at \(request.url.origin) gave no answer: \(error)")
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

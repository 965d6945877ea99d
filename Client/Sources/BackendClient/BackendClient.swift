package import HTTPMessages
import HubAPI
import JSONBytes
package import OutboundHTTP
public import TidingsModels

/// How a client proves who its user is.
public enum BackendCredential: Sendable, Equatable {
    /// HTTP Basic (RFC 7617), UTF-8.
    case basic(user: String, password: String)
    /// An opaque token of a team's own sign-in.
    case bearer(String)

    var authorization: String {
        switch self {
        case .basic(let user, let password): "Basic " + Base64.encode(Array("\(user):\(password)".utf8))
        case .bearer(let token): "Bearer " + token
        }
    }
}

/// What a device fetched by id.
public enum FetchedContent: Sendable, Equatable {
    /// A secure item.
    case item(TidingsModels.Notification)
    /// A rich item's bytes with their media type.
    case content([UInt8], type: String)
}

/// The app's client of the app back end. Every method throws ``BackendError`` with status and body.
public struct BackendClient: Sendable {
    private let endpoint: HTTPURL
    private let credential: BackendCredential?
    private let client: HTTPClient

    package init(endpoint: HTTPURL, credential: BackendCredential?, client: HTTPClient) {
        self.endpoint = endpoint
        self.credential = credential
        self.client = client
    }

    // MARK: Registration

    /// An id for this handle: the one it has, or a new one. The answer is a JSON string.
    public func registrationID(handle: String?) async throws -> String {
        let query = handle.map { "?handle=" + PercentEncoding.encode($0) } ?? ""
        let answer = try await send("POST", .register, query: query)
        guard let id = (try? JSONValue(parsing: answer.body))?.stringValue, !id.isEmpty else {
            throw BackendError(
                status: answer.status.code,
                message: "The answer is not a registration id: \(answer.text)"
            )
        }
        return id
    }

    /// Creates or updates the registration; 200 alone is success.
    public func register(id: String, _ registration: DeviceRegistration) async throws {
        _ = try await send("PUT", .registration(id: id), json: BackendJSON.json(registration))
    }

    /// Deletes the registration.
    public func unregister(id: String) async throws { _ = try await send("DELETE", .registration(id: id)) }

    /// Registers the current user's device under its installation id (the register-current-user tutorial).
    public func registerInstallation(
        platform: String,
        installationID: String,
        deviceToken: String
    ) async throws {
        let body = BackendJSON.InstallationRegistration(
            platform: platform,
            installationID: installationID,
            deviceToken: deviceToken
        )
        _ = try await send("POST", .register, json: BackendJSON.json(body))
    }

    // MARK: Notify

    /// Sends a text to one user on one platform. Names travel percent-encoded, the text as a JSON string.
    ///
    /// - Returns: The hub's notification ids by platform, when the back end tells them (ours does).
    @discardableResult
    public func notify(platform: String, user: String, text: String) async throws -> [String: NotificationID]
    {
        let query = "?pns=\(PercentEncoding.encode(platform))&to_tag=\(PercentEncoding.encode(user))"
        let answer = try await send("POST", .notifications, query: query, json: .string(text))
        return Self.notificationIDs(answer, platform: platform)
    }

    /// Stores a secret for a user (nil: oneself) and sends its id.
    @discardableResult
    public func sendSecure(_ payload: String, to user: String? = nil) async throws -> [String: NotificationID]
    {
        var object = JSONObject(["payload": .string(payload)])
        if let user { object["to"] = .string(user) }
        return Self.notificationIDs(try await send("POST", .notifications, json: .object(object)))
    }

    /// Stores a picture or sound for a user (nil: oneself) and sends its id with a message.
    @discardableResult
    public func sendRich(
        _ content: [UInt8],
        type: String,
        message: String,
        to user: String? = nil
    ) async throws -> [String: NotificationID] {
        var query = "?message=" + PercentEncoding.encode(message)
        if let user { query += "&to=" + PercentEncoding.encode(user) }
        return Self.notificationIDs(
            try await send("POST", .notifications, query: query, body: content, type: type)
        )
    }

    /// Stores a URL, a coupon or a team's own kind of content, and sends its id with a message.
    @discardableResult
    public func sendRich(
        kind: String,
        content: String,
        message: String,
        to user: String? = nil
    ) async throws -> [String: NotificationID] {
        var object = JSONObject([
            "richType": .string(kind), "content": .string(content), "message": .string(message),
        ])
        if let user { object["to"] = .string(user) }
        return Self.notificationIDs(try await send("POST", .notifications, json: .object(object)))
    }

    /// `apns=<id>,wns=<id>`, or one bare id.
    private static func notificationIDs(
        _ answer: HTTPAnswer,
        platform: String = ""
    ) -> [String: NotificationID] {
        var ids: [String: NotificationID] = [:]
        for part in (answer.fields["Tidings-Notification-Id"] ?? "").split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            if let id = pair.last.flatMap({ NotificationID(String($0)) }) {
                ids[pair.count == 2 ? String(pair[0]) : platform] = id
            }
        }
        return ids
    }

    /// Fetches what was stored for the current user.
    public func content(id: Int32) async throws -> FetchedContent {
        let answer = try await send("GET", .notification(id: String(id)))
        let type = answer.fields["Content-Type"] ?? "application/octet-stream"
        if type.lowercased().hasPrefix("application/json"),
            let item = try? BackendJSON.notification(answer.body)
        {
            return .item(item)
        }
        return .content(answer.body, type: type)
    }

    // MARK: Requests

    private func send(
        _ method: String,
        _ route: BackendRoute,
        query: String = "",
        json: JSONValue
    ) async throws -> HTTPAnswer {
        try await send(
            method,
            route,
            query: query,
            body: json.serialized(),
            type: "application/json;charset=utf-8"
        )
    }

    /// What an answer without a body says.
    private static func meaning(of status: HTTPStatus) -> String {
        switch status.code {
        case 401, 403: "The back end refuses the user name or the password."
        default: status.reasonPhrase
        }
    }

    private func send(
        _ method: String,
        _ route: BackendRoute,
        query: String = "",
        body: [UInt8]? = nil,
        type: String? = nil
    ) async throws -> HTTPAnswer {
        guard let url = HTTPURL(endpoint.origin + route.path + query) else {
            throw BackendError(status: nil, message: "The back end's address \(endpoint) is not a URL.")
        }
        var fields: HTTPFields = [:]
        if let credential { fields["Authorization"] = credential.authorization }
        if let type { fields["Content-Type"] = type }
        if let trace = TraceID.current { fields[HubHeader.traceParent] = trace.parentHeader }
        let answer: HTTPAnswer
        do { answer = try await client.send(OutboundRequest(method, url, fields: fields, body: body)) } catch
        {
            throw BackendError(
                status: nil,
                message: "The back end at \(endpoint.origin) gave no answer: \(error)"
            )
        }
        guard answer.status.code == 200 else {
            let text = (try? JSONValue(parsing: answer.body))?["message"]?.stringValue ?? answer.text
            throw BackendError(
                status: answer.status.code,
                message: text.isEmpty ? Self.meaning(of: answer.status) : text
            )
        }
        return answer
    }
}

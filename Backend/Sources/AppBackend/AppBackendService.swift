package import HTTPServing
import HTTPMessages
import HubAPI
package import HubClient
import JSONBytes
import PushCredentials
package import PushTelemetry
package import TidingsModels

/// The app's server (protocol reference, section 12): authenticates each request, registers devices at the hub for
/// their user, sends, and hands out secure and rich payloads. It reaches the hub over HTTP, like any back end would.
package final class AppBackendService: Sendable {
    let configuration: BackendConfiguration
    let store: BackendStore
    let hub: HubClient
    let tagPolicy: any TagPolicy
    let sendPolicy: any SendPolicy
    let time: any TimeSource
    let log: Log
    let counters: Counters
    private let verifier: any CredentialVerifier
    /// One change at a time for each handle, registration and installation.
    let registrationLock = KeyedLock()
    /// Runs blocking work off the loops.
    let blocking: BlockingRunner

    package typealias BlockingRunner = @Sendable (@escaping @Sendable () throws -> Void) async throws -> Void

    package init(
        configuration: BackendConfiguration,
        store: BackendStore,
        hub: HubClient,
        verifier: any CredentialVerifier,
        tagPolicy: any TagPolicy,
        sendPolicy: any SendPolicy,
        time: any TimeSource,
        log: Log,
        counters: Counters,
        blocking: @escaping BlockingRunner
    ) {
        self.configuration = configuration
        self.store = store
        self.hub = hub
        self.verifier = verifier
        self.tagPolicy = tagPolicy
        self.sendPolicy = sendPolicy
        self.time = time
        self.log = log
        self.counters = counters
        self.blocking = blocking
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        if BackendRoute(request.target) == .root {
            guard ["GET", "HEAD"].contains(request.method) else {
                return Self.refusal(
                    .methodNotAllowed(request.method, at: "at '/'", allowed: BackendRoute.root.methods)
                )
            }
            return HTTPResponse(
                200,
                ["Content-Type": "text/plain; charset=utf-8"],
                text:
                    "Tidings app back end. Apps register at /api/register and notify at /api/notifications; see docs/scenarios.\n"
            )
        }
        let trace =
            TraceID(parent: request.fields[HubHeader.traceParent]) ?? TraceID(Hex.encode(Digests.random(16)))
        return await TraceID.$current.withValue(trace) {
            var response = await authenticated(request)
            if let trace { response.fields[HubHeader.traceID] = trace.text }
            return response
        }
    }

    private func authenticated(_ request: HTTPRequest) async -> HTTPResponse {
        let response: HTTPResponse
        switch await verifier.verify(request.fields, from: request.clientAddress) {
        case .user(let user): response = await answer(request, user)
        case .missing(let challenge, let reason):
            response = Self.refusal(HubError(.unauthorized, reason), ["WWW-Authenticate": challenge])
        case .rejected(let challenge):
            // The tutorials document 403 with an empty body for a wrong password.
            response =
                configuration.isCompatibilityMode
                ? HTTPResponse(403)
                : Self.refusal(
                    HubError(.unauthorized, "The credentials are wrong."),
                    ["WWW-Authenticate": challenge]
                )
        case .throttled(let wait):
            response = Self.refusal(
                HubError(
                    .throttled,
                    "Too many wrong passwords for this user or from this address; Retry-After has the seconds to wait.",
                    retryAfter: wait
                )
            )
        case .unavailable:
            response = Self.refusal(
                HubError(.unavailable, "The credentials cannot be checked now.", retryAfter: .seconds(5))
            )
        }
        counters.add("backend_responses_total{status=\"\(response.status.code)\"}")
        return response
    }

    private func answer(_ request: HTTPRequest, _ user: AuthenticatedUser) async -> HTTPResponse {
        do { return try await route(request, user) } catch let error as HubError {
            return Self.refusal(error)
        } catch RequestBodyError.tooLarge(let countMax) {
            return Self.refusal(HubError(.tooLarge, "The body is longer than \(countMax) bytes."))
        } catch {
            log.error("backend_request_failed", ["reason": .string(String(describing: error))])
            return Self.refusal(
                HubError(.internalError, "The app back end could not do this. Its log has the reason.")
            )
        }
    }

    private func route(_ request: HTTPRequest, _ named: AuthenticatedUser) async throws -> HTTPResponse {
        // Tags compare without case, so `Alice` and `alice` are one user here too.
        let user = AuthenticatedUser(name: named.name.lowercased())
        guard (try? HubTag.username(user.name)) != nil else {
            throw HubError(
                .badRequest,
                "The user name '\(user.name)' cannot be a tag: allowed are ASCII letters and digits and _ @ # . : - , up to 111 characters."
            )
        }
        try request.fields.refuseContentCoding()
        guard let route = BackendRoute(request.target) else {
            throw HubError(.notFound, "There is nothing at '\(request.target.rawPath)'.")
        }
        switch (route, request.method) {
        case (.register, "POST"): return try await register(request, user)
        case (.registration(let id), "PUT"): return try await putRegistration(id, request, user)
        case (.registration(let id), "DELETE"): return try await deleteRegistration(id, user)
        case (.notifications, "POST"): return try await notify(request, user)
        case (.notification(let id), "GET"), (.notification(let id), "HEAD"):
            return try await content(id, user, marksRead: request.method == "GET")
        default:
            throw HubError.methodNotAllowed(
                request.method,
                at: "at '\(request.target.rawPath)'",
                allowed: route.methods
            )
        }
    }

    static func refusal(_ error: HubError, _ fields: HTTPFields = [:]) -> HTTPResponse {
        var fields = fields
        fields["Content-Type"] = "application/json; charset=utf-8"
        fields["Allow"] = error.allowedMethods
        if let seconds = error.retryAfterSeconds { fields["Retry-After"] = String(seconds) }
        return HTTPResponse(
            HTTPStatus(error.httpStatus),
            fields,
            body: JSONValue.object(["message": .string(error.message)]).serialized()
        )
    }

    /// What a refusal of the hub's means to the app (protocol reference, table 12.8 row 5): the back end's own keys are
    /// not the app's fault.
    static func mapped(_ error: HubError) -> HubError {
        switch error.code {
        case .gone, .badRequest, .tooLarge, .throttled, .unavailable: error
        case .unauthorized, .forbidden:
            HubError(.badGateway, "The hub refused the app back end's own key: \(error.message)")
        default: HubError(.badGateway, "The hub answered: \(error.message)", retryAfter: error.retryAfter)
        }
    }

    /// Calls the hub and maps its refusals.
    func atHub<Value: Sendable>(_ body: (HubClient) async throws -> Value) async throws -> Value {
        do { return try await body(hub) } catch let error as HubError { throw Self.mapped(error) }
    }

    /// Forgets expired items. Called now and then by whoever runs the back end.
    package func sweep() async throws {
        try await remove(files: try await store.removeExpired(now: time.now))
    }
}

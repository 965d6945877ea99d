import HTTPMessages
package import HTTPServing
import HubAPI
package import HubCore
package import PushTelemetry
package import TidingsModels

/// The hub's HTTP edge: authorise, decode, call the hub, encode.
package struct HubEdge: Sendable {
    let hubs: any HubManagement
    let authorizer: Authorizer
    private let log: Log
    let counters: Counters
    let time: any TimeSource
    let identifier: @Sendable () -> String
    let files: FileContainers?
    private let limiter: RequestLimiter

    /// - Parameter identifier: A new GUID at each call.
    package init(
        hubs: any HubManagement,
        authorizer: Authorizer,
        log: Log,
        counters: Counters,
        time: any TimeSource,
        files: FileContainers? = nil,
        limits: RequestLimits = RequestLimits(),
        identifier: @escaping @Sendable () -> String
    ) {
        self.hubs = hubs
        self.authorizer = authorizer
        self.log = log
        self.counters = counters
        self.time = time
        self.identifier = identifier
        self.files = files
        limiter = RequestLimiter(limits)
    }

    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let trackingID = request.fields[HubHeader.trackingID].flatMap(Self.guid) ?? identifier()
        let trace = TraceID(parent: request.fields[HubHeader.traceParent]) ?? TraceID(guid: trackingID)
        return await TraceID.$current.withValue(trace) { await respond(to: request, trackingID) }
    }

    private func respond(to request: HTTPRequest, _ trackingID: String) async -> HTTPResponse {
        var response: HTTPResponse
        do {
            response = try await answer(request)
        } catch let error as HubError {
            response = refusal(error, trackingID)
        } catch RequestBodyError.tooLarge(let countMax) {
            response = refusal(
                HubError(.tooLarge, "The request body is longer than \(countMax) bytes."),
                trackingID
            )
        } catch {
            log.error(
                "hub_request_failed",
                ["tracking_id": .string(trackingID), "reason": .string(String(describing: error))]
            )
            response = refusal(
                HubError(.internalError, "The hub could not do this. Its log has the reason."),
                trackingID
            )
        }
        response.fields[HubHeader.trackingID] = trackingID
        response.fields[HubHeader.correlationID] = identifier()
        // The telemetry of a send names the send's own.
        if response.fields[HubHeader.traceID] == nil, let trace = TraceID.current {
            response.fields[HubHeader.traceID] = trace.text
        }
        counters.add("hub_responses_total{status=\"\(response.status.code)\"}")
        return response
    }

    private func refusal(_ error: HubError, _ trackingID: String) -> HTTPResponse {
        var fields: HTTPFields = ["Content-Type": "application/xml; charset=utf-8"]
        if error.code == .unauthorized { fields["WWW-Authenticate"] = "SharedAccessSignature" }
        fields["Allow"] = error.allowedMethods
        if let seconds = error.retryAfterSeconds { fields["Retry-After"] = String(seconds) }
        return HTTPResponse(
            HTTPStatus(error.httpStatus),
            fields,
            text: HubErrorXML.text(error, trackingID: trackingID, now: time.now)
        )
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        if request.target.segments.first == "-" { return try await files(request) }
        guard let route = HubRoute(request.target) else {
            throw HubError(
                .notFound,
                "There is nothing at '\(request.target.rawPath)'. A hub has /{hub}/registrations, registrationids, tags/{tag}/registrations, "
                    + "installations, messages and schedulednotifications; docs/compatibility.md tells what is not offered."
            )
        }
        try request.fields.refuseContentCoding()
        switch route {
        case .hubs(let isFull): return try await list(isFull: isFull, request)
        case .hub(let name): return try await manage(name, request)
        default: break
        }
        guard let hub = hubs.hub(route.hub) else {
            throw HubError(.notFound, "The hub '\(route.hub)' does not exist.")
        }
        let call = HubCall(
            request: request,
            hub: hub,
            authorizer: authorizer,
            namespacePolicies: hubs.namespacePolicies,
            now: time.now
        )
        if hub.settings.isDisabled {
            // With a time to come back: .NET takes a 403 without one for a bad key.
            throw HubError(
                .forbidden,
                "The hub '\(hub.name)' is disabled (Status true in its description).",
                retryAfter: .seconds(60)
            )
        }
        do throws(HubError) {
            try limiter.take(.requests, hub: hub.name, now: time.now)
            if request.method == "POST", route.isSend {
                try limiter.take(.sends, hub: hub.name, now: time.now)
            }
        } catch {
            counters.add("hub_throttled_total{hub=\"\(hub.name)\"}")
            throw error
        }
        counters.add("hub_calls_total{hub=\"\(hub.name)\"}")
        switch route {
        case .hubs, .hub: throw HubError(.internalError, "an address of the namespace")
        case .registrationIDs, .registrations, .registration, .taggedRegistrations:
            return try await registrations(route, call)
        case .installation(_, let id): return try await installation(id, call)
        case .jobs, .job: return try await jobs(route, call)
        case .feedback: return try feedbackContainer(call)
        case .messages, .batch, .message, .scheduledMessages, .scheduledMessage:
            let response = try await messages(route, call)
            if response.status.code == 201 { counters.add("hub_notifications_accepted_total") }
            return response
        }
    }

    private static func guid(_ text: String) -> String? {
        let isGUID =
            text.utf8.count == 36
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : Hex.digit(byte) != nil
            }
        return isGUID ? text : nil
    }
}

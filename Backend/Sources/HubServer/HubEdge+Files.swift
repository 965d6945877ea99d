import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import TidingsModels

/// `/-/files` of the hub's listener, and what refers to it.
extension HubEdge {
    private static let feedbackPrefix = "feedback-"
    /// How long the address of feedback is good for.
    private static let feedbackLife = Duration.seconds(86400)
    /// Records in one file of feedback.
    private static let feedbackCountMax = 100_000
    private static let feedbackDays = 31

    /// Requests below `/-/files`; `POST /-/files/{container}` with a key of the namespace makes a container.
    func files(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard let files else { throw HubError(.notFound, "There are no files here.") }
        if request.method == "POST", request.target.segments.count == 3 {
            try authorizeNamespace(request)
            let name = request.target.segments[2]
            guard !name.hasPrefix(Self.feedbackPrefix) else {
                throw HubError(
                    .badRequest,
                    "Containers that begin with '\(Self.feedbackPrefix)' are the hubs' own."
                )
            }
            let origin = RequestAddress(request.head, hub: "").origin
            return HTTPResponse(
                201,
                ["Location": try files.make(name, origin: origin, life: .seconds(7 * 86400))]
            )
        }
        return try await files.respond(
            to: request,
            list: { try await feedbackNames($0) },
            made: { try await feedback($0, $1) }
        )
    }

    /// `feedbackcontainer`: an address as plain text.
    func feedbackContainer(_ call: HubCall) throws -> HTTPResponse {
        guard ["GET", "HEAD"].contains(call.request.method) else { throw call.methodNotAllowed("GET") }
        try call.authorize(.manage)
        guard let files else { throw HubError(.notFound, "There are no files here.") }
        let grant = FileGrant(
            Self.feedbackPrefix + call.hub.name.lowercased(),
            [.read, .list],
            until: time.now + Self.feedbackLife
        )
        return HTTPResponse(
            200,
            ["Content-Type": "text/plain; charset=utf-8"],
            text: files.address(call.address.origin, grant)
        )
    }

    /// Where the errors of a send are told; nil when there was none, and for clients older than the element.
    func errorDetails(_ call: HubCall, _ details: NotificationDetails) -> String? {
        let version = call.target.parameter("api-version") ?? ""
        let hasFailed = details.outcomes.values.contains {
            $0.keys.contains { $0 != .success && $0 != .skipped }
        }
        guard let files, hasFailed, version.isEmpty || version >= "2016-07" else { return nil }
        let container = Self.feedbackPrefix + call.hub.name.lowercased()
        let grant = FileGrant(
            container,
            path: "errors/\(details.id).txt",
            [.read],
            until: time.now + Self.feedbackLife
        )
        return files.address(call.address.origin, grant)
    }

    private func hub(ofFeedback container: String) -> Hub? {
        container.hasPrefix(Self.feedbackPrefix)
            ? hubs.hub(String(container.dropFirst(Self.feedbackPrefix.count))) : nil
    }

    /// One file for each day that has records, named by the day as at the original: `MMddyyyy.txt`.
    private func feedbackNames(_ container: String) async throws -> [String]? {
        guard let hub = hub(ofFeedback: container) else { return nil }
        var names: [String] = []
        let today = time.now.seconds / 86400
        for day in (today - Int64(Self.feedbackDays))...today {
            let start = Timestamp(seconds: day * 86400)
            let found = try await hub.queue.failures(from: start, until: start + .seconds(86400), countMax: 1)
            if !found.isEmpty { names.append(Self.name(of: start)) }
        }
        return names
    }

    private static func name(of day: Timestamp) -> String {
        let text = day.compact
        return String(text.dropFirst(4).prefix(4) + text.prefix(4)) + ".txt"
    }

    private func feedback(_ container: String, _ path: String) async throws -> [UInt8]? {
        guard let hub = hub(ofFeedback: container) else { return nil }
        let failures: [TargetFailure]
        if path.hasPrefix("errors/"), path.hasSuffix(".txt") {
            failures = try await hub.queue.failures(
                of: NotificationID(unchecked: String(path.dropFirst(7).dropLast(4)))
            )
        } else if let start = Self.day(path) {
            failures = try await hub.queue.failures(
                from: start,
                until: start + .seconds(86400),
                countMax: Self.feedbackCountMax
            )
        } else {
            throw HubError(.notFound, "There is no file '\(path)' in '\(container)'.")
        }
        var text = ""
        for failure in failures {
            text += PnsFeedbackXML.line(
                time: failure.time,
                error: failure.outcome.feedbackText,
                platform: failure.handle.platform,
                handle: failure.handle.text,
                registration: failure.registration,
                installation: failure.installation,
                notification: failure.notification,
                reason: failure.reason
            )
            text += "\n"
        }
        return Array(text.utf8)
    }

    private static func day(_ name: String) -> Timestamp? {
        guard name.utf8.count == 12, name.hasSuffix(".txt"), let number = Int(name.prefix(8)) else {
            return nil
        }
        return Timestamp(
            year: number % 10_000,
            month: number / 1_000_000,
            day: number / 10_000 % 100,
            hour: 0,
            minute: 0,
            second: 0
        )
    }
}

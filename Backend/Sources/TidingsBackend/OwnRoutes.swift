import HTTPMessages
import HTTPServing
import PushTelemetry

/// `/-/…`: what every listener answers about itself.
struct OwnRoutes: Sendable {
    let metrics: Metrics
    let readiness: Readiness
    /// Who may read the metrics, besides this machine.
    let metricsAddresses: Set<String>
    /// The gateway's; nil elsewhere.
    var broadcasts: HTTPHandler?
    /// Who may change them, besides this machine.
    var broadcastAddresses: Set<String> = []

    /// For requests whose first segment is `-`.
    func respond(to request: HTTPRequest) async -> HTTPResponse {
        let segments = request.target.segments
        if let broadcasts, segments.dropFirst().first == "broadcasts" {
            guard isAllowed(request, besides: broadcastAddresses) else {
                return Self.text(403, "Broadcasts are for this machine and for broadcasts.addresses alone.\n")
            }
            return await broadcasts(request)
        }
        guard request.method == "GET" || request.method == "HEAD" else {
            return HTTPResponse(405, ["Allow": "GET, HEAD"])
        }
        switch segments.dropFirst().joined(separator: "/") {
        case "health": return Self.text(200, "ok\n")
        case "ready":
            let problems = await readiness.problems()
            return problems.isEmpty
                ? Self.text(200, "ready\n") : Self.text(503, problems.map { $0 + "\n" }.joined())
        case "metrics":
            guard isAllowed(request, besides: metricsAddresses) else {
                return Self.text(403, "Metrics are for this machine and for metrics.addresses alone.\n")
            }
            return HTTPResponse(
                200,
                ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
                text: await metrics.prometheusText()
            )
        default: return Self.text(404, "There is nothing here.\n")
        }
    }

    private func isAllowed(_ request: HTTPRequest, besides addresses: Set<String>) -> Bool {
        HTTPURL.isLoopback(request.clientAddress) || addresses.contains(request.clientAddress)
    }

    private static func text(_ status: HTTPStatus, _ text: String) -> HTTPResponse {
        HTTPResponse(status, ["Content-Type": "text/plain; charset=utf-8"], text: text)
    }
}

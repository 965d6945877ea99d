import HTTPMessages
import HTTPServing
import PushTelemetry

/// `/-/…`: what every listener answers about itself.
enum OwnRoutes {
    /// Nil for a request that is not for us.
    static func respond(to request: HTTPRequest, counters: Counters) -> HTTPResponse? {
        let segments = request.target.segments
        guard segments.first == "-" else { return nil }
        guard request.method == "GET" || request.method == "HEAD" else {
            return HTTPResponse(405, ["Allow": "GET, HEAD"])
        }
        switch segments.dropFirst().joined(separator: "/") {
        case "health", "ready":
            return HTTPResponse(200, ["Content-Type": "text/plain; charset=utf-8"], text: "ok\n")
        case "metrics":
            return HTTPResponse(
                200,
                ["Content-Type": "text/plain; version=0.0.4; charset=utf-8"],
                text: counters.prometheusText()
            )
        default:
            return HTTPResponse(
                404,
                ["Content-Type": "text/plain; charset=utf-8"],
                text: "There is nothing here.\n"
            )
        }
    }
}

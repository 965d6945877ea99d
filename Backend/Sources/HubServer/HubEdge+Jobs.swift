import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import TidingsModels

extension HubEdge {
    /// Imports and exports (protocol reference, section 8).
    func jobs(_ route: HubRoute, _ call: HubCall) async throws -> HTTPResponse {
        let (request, hub) = (call.request, call.hub)
        try call.authorize(.manage)
        func url(_ job: HubJob) -> String { call.address.url(.job(job.id)) }
        let entry: HTTPFields = ["Content-Type": "application/atom+xml; type=entry; charset=utf-8"]
        switch (route, request.method) {
        case (.jobs, "POST"):
            let body = try await request.body.collect(upTo: RegistrationRules.bodyByteCountMax)
            let job = try await hub.submit(try JobXML.read(body), guid: identifier())
            var fields = entry
            fields["Location"] = url(job)
            return HTTPResponse(201, fields, text: JobXML.entry(job, url: url(job)))
        case (.jobs, "GET"), (.jobs, "HEAD"):
            let jobs = try await hub.allJobs().map { (job: $0, url: url($0)) }
            return HTTPResponse(
                200,
                ["Content-Type": "application/atom+xml; type=feed; charset=utf-8"],
                text: JobXML.feed(jobs, url: call.address.requestURL, updated: time.now)
            )
        case (.job(_, let id), "GET"), (.job(_, let id), "HEAD"):
            let job = try await hub.job(id)
            return HTTPResponse(200, entry, text: JobXML.entry(job, url: url(job)))
        case (.jobs, _): throw call.methodNotAllowed("GET, POST")
        default: throw call.methodNotAllowed("GET")
        }
    }
}

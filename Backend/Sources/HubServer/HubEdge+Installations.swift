import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import JSONBytes
import TidingsModels

extension HubEdge {
    /// The operations on one installation (protocol reference, section 4.1).
    func installation(
        _ id: String,
        _ call: HubCall
    ) async throws -> HTTPResponse {
        let (request, hub) = (call.request, call.hub)
        let writer = try call.authorize(.listen)
        // As recorded: the original names XML also where there is no body.
        let done = Self.xml
        switch request.method {
        case "PUT":
            let body = try await request.body.collect(upTo: InstallationJSON.byteCountMax)
            try await hub.put(try InstallationJSON.read(body, id: id), by: writer)
            return HTTPResponse(200, done)
        case "GET", "HEAD":
            let installation = try await hub.installation(id)
            return HTTPResponse(
                200,
                ["Content-Type": "application/json; charset=utf-8"],
                text: InstallationJSON.value(installation).text
            )
        case "PATCH":
            let body = try await request.body.collect(upTo: InstallationJSON.byteCountMax)
            try await hub.patch(id, try InstallationPatch(body), by: writer)
            return HTTPResponse(200, done)
        case "DELETE":
            try await hub.deleteInstallation(id, by: writer)
            return HTTPResponse(204, done)
        default:
            throw call.methodNotAllowed("GET, PUT, PATCH, DELETE")
        }
    }
}

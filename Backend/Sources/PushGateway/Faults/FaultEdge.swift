import HTTPMessages
import HTTPServing
import JSONBytes
import TidingsModels

/// `/-/faults`: GET lists, POST adds, DELETE removes all, `/-/faults/{id}` DELETE removes one.
struct FaultEdge: Sendable {
    let table: FaultTable
    private static let bodyByteCountMax = 16 << 10

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        do throws(HubError) { return try await answer(request) } catch {
            let body = JSONValue.object(["error": .string(error.message)]).serialized()
            return HTTPResponse(
                HTTPStatus(error.httpStatus),
                ["Content-Type": "application/json"],
                body: body
            )
        }
    }

    private func answer(_ request: HTTPRequest) async throws(HubError) -> HTTPResponse {
        let segments = request.target.segments.dropFirst(2)
        switch (request.method, segments.count) {
        case ("GET", 0):
            let entries = table.entries.map { entry in
                var object = JSONObject(["id": .number(entry.id)])
                for member in entry.rule.json.members { object[member.name] = member.value }
                object["seen"] = .number(entry.seenCount)
                object["applied"] = .number(entry.appliedCount)
                return JSONValue.object(object)
            }
            return json(200, .object(["faults": .array(entries)]))
        case ("POST", 0):
            // A page of some other site can post a form to this machine, and no JSON.
            guard request.fields["Content-Type"]?.lowercased().hasPrefix("application/json") == true else {
                throw HubError(.badRequest, "The Content-Type must be application/json.")
            }
            let rule = try FaultRule(try await body(request))
            return json(201, .object(["id": .number(try table.add(rule))]))
        case ("DELETE", 0):
            table.removeAll()
            return HTTPResponse(204)
        case ("DELETE", 1):
            guard let id = segments.first.flatMap({ Int($0) }), table.remove(id) else {
                throw HubError(.notFound, "There is no fault '\(segments.first ?? "")'.")
            }
            return HTTPResponse(204)
        default:
            return HTTPResponse(405, ["Allow": segments.isEmpty ? "GET, POST, DELETE" : "DELETE"])
        }
    }

    private func body(_ request: HTTPRequest) async throws(HubError) -> JSONValue {
        guard let bytes = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            throw HubError(.badRequest, "The body is longer than \(Self.bodyByteCountMax) bytes.")
        }
        do throws(JSONError) { return try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not JSON: \(error).")
        }
    }

    private func json(_ status: HTTPStatus, _ value: JSONValue) -> HTTPResponse {
        HTTPResponse(status, ["Content-Type": "application/json"], body: value.serialized())
    }
}

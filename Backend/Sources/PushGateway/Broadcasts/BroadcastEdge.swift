import DeviceLink
import HTTPMessages
import HTTPServing
import JSONBytes
import PushTelemetry
import TidingsModels

/// `/-/broadcasts`: GET lists; `/-/broadcasts/{id}`: PUT `{"version": "…"}` sets, DELETE removes. An id may hold slashes, as
/// they are or as `%2F`.
struct BroadcastEdge: Sendable {
    let table: BroadcastTable
    let mailbox: any Mailbox
    let log: Log
    let counters: Counters
    private static let bodyByteCountMax = 4 << 10

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        do throws(HubError) { return try await answer(request) } catch {
            return json(HTTPStatus(error.httpStatus), .object(["error": .string(error.message)]))
        }
    }

    private func answer(_ request: HTTPRequest) async throws(HubError) -> HTTPResponse {
        let name = request.target.segments.dropFirst(2).joined(separator: "/")
        switch (request.method, name.isEmpty) {
        case ("GET", true), ("HEAD", true):
            let entries = table.all.map { entry in
                JSONValue.object([
                    "id": .string(entry.id.text), "version": .string(entry.version),
                    "subscribers": .number(entry.subscriberCount),
                ])
            }
            return json(200, .object(["broadcasts": .array(entries)]))
        case ("PUT", false):
            let id = try id(name)
            let version = try version(await body(request))
            let isSet = try await stored {
                try await mailbox.setBroadcast(id, version: version) { [table] in table.set(id, version) }
            }
            guard isSet else {
                throw HubError(.badRequest, "There are \(BroadcastTable.countMax) broadcasts already.")
            }
            counters.add("gateway_broadcast_changes_total")
            log.info("broadcast_set", ["id": .string(id.text), "version": .string(version)])
            return HTTPResponse(204)
        case ("DELETE", false):
            let id = try id(name)
            let isRemoved = try await stored {
                try await mailbox.removeBroadcast(id) { [table] in table.remove(id) }
            }
            guard isRemoved else { throw HubError(.notFound, "There is no broadcast '\(name)'.") }
            log.info("broadcast_removed", ["id": .string(id.text)])
            return HTTPResponse(204)
        default:
            return HTTPResponse(405, ["Allow": name.isEmpty ? "GET, HEAD" : "PUT, DELETE"])
        }
    }

    private func id(_ text: String) throws(HubError) -> BroadcastID {
        guard let id = BroadcastID(text) else {
            throw HubError(
                .badRequest,
                "The id of a broadcast is 1 to \(BroadcastID.byteCountMax) visible ASCII characters, and not 'errors'."
            )
        }
        return id
    }

    private func version(_ json: JSONValue) throws(HubError) -> String {
        guard case .object(let object) = json, object.members.count == 1,
            let version = object["version"]?.stringValue, !version.isEmpty, BroadcastID.isVersion(version)
        else {
            throw HubError(
                .badRequest,
                "The body must be {\"version\": TEXT}, with 1 to \(BroadcastID.versionByteCountMax) ASCII characters."
            )
        }
        return version
    }

    private func body(_ request: HTTPRequest) async throws(HubError) -> JSONValue {
        guard request.fields["Content-Type"]?.lowercased().hasPrefix("application/json") == true else {
            throw HubError(.badRequest, "The Content-Type must be application/json.")
        }
        guard let bytes = try? await request.body.collect(upTo: Self.bodyByteCountMax) else {
            throw HubError(.badRequest, "The body is longer than \(Self.bodyByteCountMax) bytes.")
        }
        do throws(JSONError) { return try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not JSON: \(error).")
        }
    }

    private func stored<Value>(_ work: () async throws -> Value) async throws(HubError) -> Value {
        do { return try await work() } catch {
            log.error("mailbox_failed", ["reason": .string(String(describing: error))])
            throw HubError(.internalError, "The mailbox failed.")
        }
    }

    private func json(_ status: HTTPStatus, _ value: JSONValue) -> HTTPResponse {
        HTTPResponse(status, ["Content-Type": "application/json"], body: value.serialized())
    }
}

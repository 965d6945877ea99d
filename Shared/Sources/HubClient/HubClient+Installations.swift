import HTTPMessages
import HubAPI
import JSONBytes
import OutboundHTTP
public import TidingsModels

/// One change of an installation, as PATCH takes it.
public struct InstallationChange: Equatable, Sendable {
    /// `add`, `remove` or `replace`.
    public enum Operation: String, Sendable {
        /// What to do at the path.
        case add, remove, replace
    }

    /// What to do.
    public var operation: Operation
    /// Such as `/tags`, `/tags/plum`, `/pushChannel`, `/templates/name/body`.
    public var path: String
    /// The value as text, JSON inside for an object; nil to remove.
    public var value: String?

    /// A change.
    public init(_ operation: Operation, _ path: String, _ value: String? = nil) {
        self.operation = operation
        self.path = path
        self.value = value
    }
}

extension HubClient {
    /// Makes or replaces an installation.
    public func put(_ installation: Installation) async throws {
        _ = try await send(
            "PUT",
            .installation(hub: hub, id: installation.id),
            fields: Self.json,
            bytes: InstallationJSON.value(installation).serialized(),
            success: [200]
        )
    }

    /// One installation; nil when there is none.
    public func installation(_ id: String) async throws -> Installation? {
        do {
            let answer = try await send("GET", .installation(hub: hub, id: id), success: [200])
            return try InstallationJSON.read(answer.body, id: id)
        } catch let error as HubError where error.code == .notFound { return nil }
    }

    /// Does all changes, or none.
    /// - Throws: ``HubError`` `.notFound` when there is no such installation, `.badRequest` with the change at fault.
    public func patch(_ id: String, _ changes: [InstallationChange]) async throws {
        let operations = changes.map { change in
            var object = JSONObject(["op": .string(change.operation.rawValue), "path": .string(change.path)])
            object["value"] = change.value.map { .string($0) }
            return JSONValue.object(object)
        }
        _ = try await send(
            "PATCH",
            .installation(hub: hub, id: id),
            fields: Self.json,
            bytes: JSONValue.array(operations).serialized(),
            success: [200, 204]
        )
    }

    /// Deletes an installation with its registrations; also when there is none.
    public func deleteInstallation(_ id: String) async throws {
        _ = try await send("DELETE", .installation(hub: hub, id: id), success: [200, 204])
    }

    private static let json: HTTPFields = ["Content-Type": "application/json; charset=utf-8"]
}

import HTTPMessages
import HubAPI
import OutboundHTTP
public import TidingsModels

/// A client of a namespace: the hubs themselves. Needs a connection string whose policy is the namespace's, with Manage.
public struct NamespaceClient: Sendable {
    private let client: HubClient

    /// - Parameter client: Of any hub of the namespace; its connection is used.
    public init(_ client: HubClient) { self.client = client }

    private func entry(
        _ method: String,
        _ hub: HubDescription,
        _ fields: HTTPFields,
        _ success: Set<Int>
    ) async throws -> HubDescription {
        let body = HubDescriptionXML.request(hub)
        let answer = try await client.send(
            method,
            .hub(hub.name),
            fields: fields,
            body: body,
            success: success
        )
        return try HubDescriptionXML.read(answer.body, name: hub.name)
    }

    /// Makes a hub.
    /// - Throws: ``HubError`` `.conflict` when it is there.
    public func create(_ hub: HubDescription) async throws -> HubDescription {
        try await entry("PUT", hub, [:], [201])
    }

    /// Replaces the description of a hub.
    public func update(_ hub: HubDescription) async throws -> HubDescription {
        try await entry("PUT", hub, ["If-Match": "*"], [200])
    }

    /// One hub; nil when there is none.
    public func hub(_ name: String) async throws -> HubDescription? {
        do {
            let answer = try await client.send("GET", .hub(name), success: [200])
            // The original answers an empty feed for a hub that does not exist.
            if (try? HubDescriptionXML.readNames(answer.body)) != nil { return nil }
            return try HubDescriptionXML.read(answer.body, name: name)
        } catch let error as HubError where error.code == .notFound { return nil }
    }

    /// The names of the hubs.
    public func names() async throws -> [String] {
        try HubDescriptionXML.readNames(
            try await client.send("GET", .hubs(isFull: false), success: [200]).body
        )
    }

    /// Deletes a hub with all it holds; false when there was none.
    @discardableResult
    public func delete(_ name: String) async throws -> Bool {
        do {
            _ = try await client.send("DELETE", .hub(name), success: [200])
            return true
        } catch let error as HubError where error.code == .notFound { return false }
    }
}

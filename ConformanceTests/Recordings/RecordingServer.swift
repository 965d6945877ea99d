import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import TidingsBackend
import TidingsConformance
import TidingsModels

/// A hub server without hubs, which each recording fills as its first answer shows.
struct RecordingServer {
    private let address: String
    private let namespace: HubConnectionString
    private let clock: WorldClock
    private let client = HTTPClient(trust: OutboundTrust())

    static func run(_ body: (RecordingServer) async throws -> Void) async throws {
        let folder = try Files.makeScratchFolder("tidings-recordings")
        defer { Files.removeTree(folder) }
        var configuration = ServerConfiguration(statePath: folder)
        configuration.services = [.hub]
        // The recorded channels lead anywhere, which the original takes.
        configuration.channelMode = .original
        configuration.useFreePorts()
        let clock = WorldClock()
        let server = try await TidingsServer.start(configuration, time: clock, log: .inMemory())
        guard let address = server.endpoints.hub, let text = server.endpoints.namespaceConnectionString else {
            throw HubError(.internalError, "the server tells no address")
        }
        do {
            try await body(
                RecordingServer(
                    address: address,
                    namespace: try HubConnectionString(parsing: text),
                    clock: clock
                )
            )
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    private init(address: String, namespace: HubConnectionString, clock: WorldClock) {
        (self.address, self.namespace, self.clock) = (address, namespace, clock)
    }

    /// What differs at each call; nil where nothing does.
    func replay(_ recording: Recording) async throws -> [String?] {
        var rebuilder = Rebuilder(recording)
        let hub = recording.calls[0].hub
        var listenKey: String?
        if !recording.name.hasPrefix("ManagementApi") {
            let made = try await send(
                "PUT",
                "/" + hub,
                body: HubDescriptionXML.request(HubDescription(name: hub))
            )
            listenKey = try HubDescriptionXML.read(made.body, name: hub).policies.first?.primaryKey
            try await fill(hub, recording, &rebuilder)
        }
        var differences: [String?] = []
        for (index, call) in recording.calls.enumerated() {
            let request = try rebuilder.request(index)
            let root = call.target == "/" || call.target.hasPrefix("/?") ? "/" : "/" + hub + request.resource
            var query = request.query
            // The page after ours is named by our token.
            if let token = rebuilder.ids["continuation"],
                let start = query.firstRange(of: "continuationtoken=")
            {
                query = query[..<start.upperBound] + token
            }
            let answer = try await send(
                request.method,
                root + query,
                fields: request.fields,
                body: request.body,
                signer: request.signer,
                listenKey: listenKey
            )
            differences.append(Structure(answer).difference(from: Structure(call)))
            if let token = answer.fields["x-ms-continuationtoken"] { rebuilder.ids["continuation"] = token }
            learn(call, answer, &rebuilder)
            if listenKey == nil, answer.status.code == 201, request.resource.isEmpty {
                listenKey = try HubDescriptionXML.read(answer.body, name: hub).policies.first?.primaryKey
            }
        }
        _ = try await send("DELETE", "/" + hub)
        return differences
    }

    /// Remembers which of our ids stands for a recorded one.
    private func learn(_ call: RecordedCall, _ answer: HTTPAnswer, _ rebuilder: inout Rebuilder) {
        func last(_ address: String?) -> String? {
            address?.prefix { $0 != "?" }.split(separator: "/").last.map(String.init)
        }
        for name in ["Content-Location", "Location"] {
            if let theirs = last(call.fields[name]), let ours = last(answer.fields[name]) {
                rebuilder.ids[theirs] = ours
            }
        }
    }

    /// Brings the hub to what the first list of the recording shows.
    private func fill(_ hub: String, _ recording: Recording, _ rebuilder: inout Rebuilder) async throws {
        guard let first = recording.calls.first, first.query.contains("$top=100"), let body = first.body
        else { return }
        var installations: [String: [Registration]] = [:]
        for registration in try RegistrationXML.readFeed(Array(body.utf8)) {
            let owner = registration.content.tags.first { $0.text.hasPrefix("$InstallationId:{") }
            guard let id = owner.map({ String($0.text.dropFirst("$InstallationId:{".count).dropLast()) })
            else {
                _ = try await send(
                    "PUT",
                    "/\(hub)/registrations/\(registration.id)",
                    body: RegistrationXML.request(registration.content, id: nil)
                )
                continue
            }
            installations[id, default: []].append(registration)
        }
        for (id, rows) in installations { try await fill(hub, id, rows, &rebuilder) }
    }

    private func fill(
        _ hub: String,
        _ id: String,
        _ rows: [Registration],
        _ rebuilder: inout Rebuilder
    ) async throws {
        let first = rows[0].content
        let native = rows.first { $0.content.template == nil }?.content ?? first
        let tags = native.tags.filter { !$0.isSystem }
        let user = native.tags.first { $0.text.hasPrefix("$UserId:{") }.map {
            String($0.text.dropFirst("$UserId:{".count).dropLast())
        }
        let templates = rows.compactMap(\.content.template).map {
            // The original held a toast that is not XML, which we refuse as a toast: here it is raw.
            let isText = $0.body.hasPrefix("{")
            let headers = $0.headers.map {
                $0.name == "X-WNS-Type" && isText ? .init($0.name, "wns/raw") : $0
            }
            return InstallationTemplate(
                name: $0.name ?? "",
                body: $0.body,
                headers: headers,
                expiry: $0.expiry
            )
        }
        let installation = Installation(
            id: id,
            handle: first.handle,
            userID: user,
            tags: tags,
            pushVariables: first.pushVariables,
            templates: templates
        )
        _ = try await send(
            "PUT",
            "/\(hub)/installations/\(id)",
            body: InstallationJSON.value(installation).text
        )
        let listed = try RegistrationXML.readFeed(try await send("GET", "/\(hub)/registrations").body)
        for row in rows {
            let ours = listed.first {
                $0.content.tags.contains(HubTag(unchecked: "$InstallationId:{\(id)}"))
                    && $0.content.template?.name == row.content.template?.name
            }
            rebuilder.ids[row.id.text] = ours?.id.text
        }
        // The recorded hub had lost the row of one part of an installation now and then.
        if !rows.contains(where: { $0.content.template == nil }),
            let extra = listed.first(where: {
                $0.content.template == nil
                    && $0.content.tags.contains(HubTag(unchecked: "$InstallationId:{\(id)}"))
            })
        {
            _ = try await send("DELETE", "/\(hub)/registrations/\(extra.id)")
        }
    }

    private func send(
        _ method: String,
        _ path: String,
        fields: HTTPFields = [:],
        body: String? = nil,
        signer: Signer = .namespace,
        listenKey: String? = nil
    ) async throws -> HTTPAnswer {
        var fields = fields
        let (name, key) =
            switch signer {
            case .namespace: (namespace.keyName, namespace.key)
            case .listen: (AccessPolicy.listenName, listenKey ?? "")
            case .unknown: (namespace.keyName, "another key")
            }
        fields["Authorization"] = SharedAccessSignature.make(
            resource: address + "/",
            keyName: name,
            key: key,
            expires: clock.now + .seconds(600)
        )
        guard let url = HTTPURL(address + path) else {
            throw HubError(.internalError, "'\(path)' is no path")
        }
        return try await client.send(
            OutboundRequest(method, url, fields: fields, body: body.map { Array($0.utf8) })
        )
    }
}

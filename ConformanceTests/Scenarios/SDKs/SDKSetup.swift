import HubClient
import TidingsConformance
import TidingsModels

/// What is in the hub before the request of a vector, made with our own client.
struct SDKSetup: Sendable {
    /// Returns what the vector's names in braces stand for.
    let prepare: @Sendable (SDKSender) async throws -> [String: String]

    static let nothing = SDKSetup { _ in [:] }

    /// `{id}`: an unused registration id.
    static let registrationID = SDKSetup { ["id": try await $0.world.hub().newRegistrationID().text] }

    /// `{id}`: the Apple registration of ``SDKBody/token`` with the tags a and b.
    static let registration = SDKSetup { sender in
        let content = RegistrationContent(
            handle: try PlatformHandle(SDKBody.token, platform: .apns),
            tags: [try HubTag("a"), try HubTag("b")]
        )
        return ["id": try await sender.world.hub().create(content).id.text]
    }

    /// Three registrations of Google tokens with the tag a, two of them of one token.
    static let registrations = SDKSetup { sender in
        let hub = try sender.world.hub()
        for token in ["t:1", "t:2", "t:2"] {
            let handle = try PlatformHandle(token, platform: .fcmV1)
            _ = try await hub.create(RegistrationContent(handle: handle, tags: [try HubTag("a")]))
        }
        return [:]
    }

    /// A native registration of each handle, with the tags.
    static func registered(_ handles: (String, Platform)..., tags: [String] = []) -> SDKSetup {
        SDKSetup { sender in
            for (text, platform) in handles {
                let handle = try PlatformHandle(text, platform: platform)
                let content = RegistrationContent(handle: handle, tags: try tags.map { try HubTag($0) })
                _ = try await sender.world.hub().create(content)
            }
            return [:]
        }
    }

    /// Three registrations, the first page of which was read: `{token}` continues.
    static func page(_ line: String) -> SDKSetup {
        SDKSetup { sender in
            _ = try await registrations.prepare(sender)
            let first = try await sender.send(line)
            return ["token": first.fields["X-MS-ContinuationToken"] ?? "none"]
        }
    }

    /// The installation i-1 of an Apple device, with a user, a tag and a template.
    static let installation = SDKSetup { sender in
        try await sender.world.hub().put(
            Installation(
                id: "i-1",
                handle: try PlatformHandle(SDKBody.token, platform: .apns),
                userID: "pomona",
                tags: [try HubTag("a")],
                templates: [InstallationTemplate(name: "t", body: SDKBody.appleTemplate)]
            )
        )
        return [:]
    }

    /// `{id}`: a send to the registration of an Apple device that the gateway does not know, over and done.
    static let sent = SDKSetup { sender in
        _ = try await registration.prepare(sender)
        let hub = try sender.world.hub()
        guard let id = try await hub.send(.native(.apns, SDKBody.apple), tags: "a || b") else {
            throw WorldFailure("the send has no id")
        }
        _ = try await sender.world.outcome(id)
        return ["id": id.text]
    }

    /// `{id}`: a send in an hour.
    static let scheduled = SDKSetup { sender in
        let moment = sender.world.clock.now + .seconds(3600)
        let id = try await sender.world.hub().schedule(.native(.apns, SDKBody.apple), tags: "a", at: moment)
        return ["id": id?.text ?? "none"]
    }

    /// `{container}` and `{file}`, an import file in it, and both as `{containerXML}` and `{fileXML}`, escaped.
    static let container = SDKSetup { sender in
        let hub = try sender.namespaceHub()
        let container = try await hub.makeContainer("transfer")
        try await hub.upload(container, "import.txt", Array("".utf8))
        let file = try HubClient.file(container, "import.txt").description
        let escaped = { (text: String) in text.replacing("&", with: "&amp;") }
        return [
            "container": container, "file": file, "containerXML": escaped(container),
            "fileXML": escaped(file),
        ]
    }

    /// `{id}`: an export that is done, in `{containerXML}`.
    static let job = SDKSetup { sender in
        var values = try await container.prepare(sender)
        let hub = try sender.namespaceHub()
        let job = try await hub.submit(
            HubJob(kind: .export, outputContainer: values["container"] ?? "")
        )
        while !(try await hub.job(job.id).status.isFinal) { try await Task.sleep(for: .milliseconds(5)) }
        values["id"] = job.id
        return values
    }

    /// The hub garden, without registrations.
    static let garden = SDKSetup { sender in
        _ = try await NamespaceClient(try sender.namespaceHub()).create(HubDescription(name: "garden"))
        return [:]
    }
}

extension SDKSender {
    /// A client with a key of the namespace.
    fileprivate func namespaceHub() throws -> HubClient {
        HubClient(
            try HubConnectionString(parsing: try world.server.endpoints.namespaceConnectionString ?? ""),
            hub: world.hubName,
            client: try world.httpClient(),
            time: world.clock
        )
    }
}

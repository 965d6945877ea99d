import HTTPMessages
import HubAPI
import HubClient
import ProcessLifecycle
import PushCredentials
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Imports, exports, feedback and the files that they use (protocol reference, sections 5.10 and 8).
@Suite("The hub's jobs and files")
struct HubJobTests {
    /// A client with a key of the namespace, which may make containers.
    private func client(_ world: World) throws -> HubClient {
        let text = try world.server.endpoints.namespaceConnectionString ?? ""
        return HubClient(
            try HubConnectionString(parsing: text),
            hub: "tidings",
            client: try world.httpClient(),
            time: world.clock
        )
    }

    private func finished(_ client: HubClient, _ job: HubJob) async throws -> HubJob {
        while true {
            let now = try await client.job(job.id)
            if now.status.isFinal { return now }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    private func text(
        _ client: HubClient,
        _ container: String,
        _ job: HubJob,
        _ name: String
    ) async throws -> String {
        let path = try #require(job.outputProperties[name])
        return String(decoding: try await client.download(container, path), as: UTF8.self)
    }

    private func run(
        _ client: HubClient,
        _ container: String,
        _ kind: HubJob.Kind,
        _ lines: String
    ) async throws -> HubJob {
        try await client.upload(container, "import.txt", Array(lines.utf8))
        let input = try HubClient.file(container, "import.txt").description
        return try await finished(
            client,
            try await client.submit(HubJob(kind: kind, outputContainer: container, importFile: input))
        )
    }

    @Test(
        "an export imports elsewhere: every platform, templates with line ends, installations; then update, upsert and delete by lines"
    )
    func roundTrip() async throws {
        try await World.run { world in
            let client = try client(world)
            let container = try await client.makeContainer("transfer")
            let multiline = "{\n  \"aps\": {\"alert\": \"$(m)\"}\n}"
            _ = try await client.create(
                RegistrationContent(
                    handle: try PlatformHandle("ab12", platform: .apns),
                    tags: [try HubTag("news")],
                    pushVariables: ["n": "v & w"],
                    template: RegistrationTemplate(name: "Big One", body: multiline, expiry: "0")
                )
            )
            let keys = SubscriptionKeys(p256dh: "BPk", auth: "x")
            for handle in [
                try PlatformHandle("https://p.example/1", platform: .browser, keys: keys),
                try PlatformHandle("1-2", platform: .baidu),
                try PlatformHandle("t:1", platform: .fcmV1), try PlatformHandle("t:2", platform: .gcm),
            ] { _ = try await client.create(RegistrationContent(handle: handle)) }
            try await client.put(
                Installation(
                    id: "i-1",
                    handle: try PlatformHandle("cd34", platform: .apns),
                    userID: "po",
                    templates: [InstallationTemplate(name: "Two Words", body: "{\"a\":\"$(b)\"}")]
                )
            )
            let before = try await client.registrations()
            let export = try await finished(
                client,
                try await client.submit(HubJob(kind: .export, outputContainer: container))
            )
            #expect(export.status == .completed && export.progress == 100 && export.failure == nil)
            #expect(export.outputProperties == ["OutputFilePath": "tidings/\(export.id)/Output.txt"])
            let lines = try await text(client, container, export, "OutputFilePath")
            #expect(lines.split(separator: "\n").count == before.count)

            // Into another hub, whose registrations then are the same.
            let namespace = NamespaceClient(client)
            _ = try await namespace.create(HubDescription(name: "other"))
            let text = try world.server.endpoints.namespaceConnectionString ?? ""
            let other = HubClient(
                try HubConnectionString(parsing: text),
                hub: "other",
                client: try world.httpClient(),
                time: world.clock
            )
            let imported = try await run(other, container, .create, lines)
            #expect(imported.status == .completed, "\(imported.failure ?? "")")
            #expect(try await self.text(other, container, imported, "FailedFilePath") == "")
            let results = try await self.text(other, container, imported, "OutputFilePath").split(
                separator: "\n"
            )
            #expect(
                results.map(String.init) == before.enumerated().map { "\($0.offset + 1),\($0.element.id)" }
            )
            #expect(try await other.registrations().map(\.content) == before.map(\.content))
            #expect(try await other.registrations().map(\.id) == before.map(\.id))

            // Again: each line fails alone, with its number and the reason.
            let again = try await run(other, container, .create, lines)
            #expect(again.status == .completed)
            let failed = try await self.text(other, container, again, "FailedFilePath").split(separator: "\n")
            #expect(failed.count == before.count && failed[0].hasPrefix("1,") && failed[0].contains("exists"))

            let id = before[0].id
            let changed = String(lines.prefix { $0 != "\n" }).replacing(
                "<Tags>news</Tags>",
                with: "<Tags>sports,x</Tags>"
            )
            .replacing("<ETag>1</ETag>", with: "")
            let mixed =
                changed
                + "\n\nnonsense\n<AppleRegistrationDescription><DeviceToken>ab</DeviceToken></AppleRegistrationDescription>\n"
            let updated = try await run(other, container, .update, mixed)
            #expect(try await self.text(other, container, updated, "OutputFilePath") == "1,\(id)\n")
            let reasons = try await self.text(other, container, updated, "FailedFilePath").split(
                separator: "\n"
            )
            #expect(
                reasons.count == 2 && reasons[0].hasPrefix("3,") && reasons[1].hasPrefix("4,")
                    && reasons[1].contains("RegistrationId")
            )
            #expect(try await other.registration(id)?.content.tags.map(\.text) == ["sports", "x"])
            #expect(try await other.registration(id)?.etag == 2)

            let upserted = try await run(
                other,
                container,
                .upsert,
                changed.replacing(id.text, with: "9-9-9") + "\r\n" + changed
            )
            #expect(try await self.text(other, container, upserted, "OutputFilePath") == "1,9-9-9\n2,\(id)\n")
            let deleted = try await run(
                other,
                container,
                .delete,
                "<X><RegistrationId>9-9-9</RegistrationId></X>\n<X><RegistrationId>8-8-8</RegistrationId></X>"
            )
            #expect(try await self.text(other, container, deleted, "OutputFilePath") == "1,9-9-9\n")
            #expect(try await self.text(other, container, deleted, "FailedFilePath").hasPrefix("2,"))
            #expect(try await other.jobs().map(\.kind) == [.delete, .upsert, .update, .create, .create])

            // A backup holds the containers as well.
            let copy = world.serverState + "-copy"
            _ = try Backup.make(of: world.serverState, at: copy)
            #expect(Files.exists(copy + "/files/containers/transfer/import.txt"))
            #expect(Files.exists(copy + "/keys/credentials.key"))
        }
    }

    @Test(
        "many lines: all are there once, sends reach them, and a restart in the middle goes on behind the last stored ones"
    )
    func interrupted() async throws {
        try await World.run { world in
            var client = try client(world)
            var container = try await client.makeContainer("transfer")
            let count = 4000
            let connect = "xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\""
            let lines = (0..<count).map { index in
                let token = String(0x1000_0000 + index, radix: 16)
                return
                    "<AppleRegistrationDescription \(connect)><Tags>bulk</Tags><DeviceToken>\(token)</DeviceToken></AppleRegistrationDescription>"
            }
            try await client.upload(container, "many.txt", Array(lines.joined(separator: "\n").utf8))
            let input = try HubClient.file(container, "many.txt").description
            let job = try await client.submit(
                HubJob(kind: .create, outputContainer: container, importFile: input)
            )
            while try await client.job(job.id).progress == 0 { await Task.yield() }
            await world.stopServer()
            try await world.startServer()
            client = try self.client(world)
            let done = try await finished(client, job)
            #expect(done.status == .completed, "\(done.failure ?? "")")
            container = try await client.makeContainer("transfer")
            let output = try await text(client, container, done, "OutputFilePath").split(separator: "\n")
            #expect(output.count == count && output[count - 1].hasPrefix("\(count),"))
            #expect(try await client.registrations(tag: try HubTag("bulk"), countMax: 10_000).count == count)
            let sent = try #require(
                try await client.send(.native(.apns, #"{"aps":{"alert":"x"}}"#), tags: "bulk")
            )
            #expect(try await world.outcome(sent).targetCount == count)
        }
    }

    @Test(
        "feedback and the error details of a send tell each dead handle; their addresses end, and hold for nothing else"
    )
    func feedback() async throws {
        try await World.run { world in
            let client = try client(world)
            try await client.put(
                Installation(
                    id: "i-1",
                    handle: try PlatformHandle("ab13", platform: .apns),
                    tags: [try HubTag("dead")]
                )
            )
            let sent = try #require(
                try await client.send(.native(.apns, #"{"aps":{"alert":"x"}}"#), tags: "dead")
            )
            let details = try await world.outcome(sent)
            let address = try #require(details.errorDetails)
            let errors = try await world.request("GET", address)
            #expect(errors.status.code == 200)
            #expect(errors.text.contains("<NotificationSystemError>BadChannel</NotificationSystemError>"))
            #expect(
                errors.text.contains("<PnsHandle>AB13</PnsHandle>")
                    && errors.text.contains("<InstallationId>i-1</InstallationId>")
            )
            let old = try await world.signed("GET", "/tidings/messages/\(sent)?api-version=2015-04")
            #expect(!old.text.contains("PnsErrorDetailsUri"))

            let container = try await client.feedbackContainer()
            #expect(container.hasPrefix(try world.hubURL + "/-/files/feedback-tidings?"))
            let listed = try await world.request("GET", container + "&restype=container&comp=list")
            #expect(listed.status.code == 200)
            let name = try #require(
                listed.text.firstRange(of: "<Name>").map {
                    String(listed.text[$0.upperBound...].prefix { $0 != "<" })
                }
            )
            #expect(
                String(decoding: try await client.download(container, name), as: UTF8.self) == errors.text
            )

            for (method, url, reason) in [
                ("GET", address.replacing("sig=", with: "sig=A"), "InvalidSignature"),
                ("GET", address.replacing("sp=r", with: "sp=rw"), "InvalidSignature"),
                ("GET", address.replacing("errors/", with: "other/"), "InvalidSignature"),
                ("PUT", address, "MissingClaim"),
                ("GET", String(address.prefix { $0 != "?" }), "MissingToken"),
            ] {
                let answer = try await world.request(method, url, body: method == "PUT" ? [1] : nil)
                #expect(answer.status.code == 401 && answer.text.contains(reason), "\(url): \(answer.text)")
            }
            world.clock.advance(by: .seconds(2 * 86400))
            #expect(try await world.request("GET", address).text.contains("ExpiredToken"))
        }
    }

    @Test("jobs and files that are refused, with the reason")
    func refusals() async throws {
        try await World.run { world in
            let client = try client(world)
            let container = try await client.makeContainer("transfer")
            func submit(_ job: HubJob) async throws -> HubError? {
                do { _ = try await client.submit(job) } catch let error as HubError { return error }
                return nil
            }
            let bad: [(HubJob, String)] = [
                (HubJob(kind: .create, outputContainer: container), "ImportFileUri"),
                (HubJob(kind: .export, outputContainer: "http://elsewhere.example/c"), "https"),
                (HubJob(kind: .export, outputContainer: "file:///etc"), "hub.jobFolder"),
                (HubJob(kind: .export, outputContainer: "no address"), "no address"),
                (
                    HubJob(kind: .export, outputContainer: container.replacing("sp=rwl", with: "sp=r")),
                    "InvalidSignature"
                ),
            ]
            for (job, reason) in bad {
                let error = try await submit(job)
                #expect(error?.message.contains(reason) == true, "\(reason): \(String(describing: error))")
            }
            let listen = try world.hub(full: false)
            await #expect(throws: HubError.self) { try await listen.jobs() }
            #expect(try await world.signed("GET", "/tidings/jobs/none").status.code == 404)
            let missing = try await finished(
                client,
                try await client.submit(
                    HubJob(
                        kind: .create,
                        outputContainer: container,
                        importFile: try HubClient.file(container, "none.txt").description
                    )
                )
            )
            #expect(missing.status == .failed && missing.failure?.contains("no such file") == true)
            for path in ["../x", ".x", "a/../../b", "a%2F..%2Fb", "x.new"] {
                let url = container.replacing("/transfer?", with: "/transfer/\(path)?")
                #expect(try await world.request("PUT", url, body: [1]).status.code >= 400, "\(path)")
            }
            #expect(try await world.signed("POST", "/-/files/mine").status.code == 401)
        }
    }
}

import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsBackend
import TidingsConformance
import TidingsModels
import Testing

/// Everything that services and devices log at every level, with good and bad requests under way.
@Suite("Secrets in logs")
struct LogSecrets {
    @Test("no key, token, password, payload or whole handle is in any log line")
    func logs() async throws {
        try await World.run { world in
            var secrets: [String: String] = [:]
            let text = "Payload-4711"
            let phone = try await world.device("phone", .apns)
            let google = try await world.device("google", .fcmV1)
            let windows = try await world.device("windows", .wns)
            for (device, platform) in [(phone, Platform.apns), (google, .fcmV1), (windows, .wns)] {
                let handle = try await device.handle()
                secrets["handle of \(platform)"] = handle
                try await world.registerNative(handle, platform, tag: "me")
            }
            // Good ones, to everybody.
            let hub = try world.hub()
            for notification in [
                HubNotification.native(.apns, "{\"aps\":{\"alert\":\"\(text)\"}}"),
                .native(.fcmV1, "{\"message\":{\"data\":{\"message\":\"\(text)\"}}}"),
                .native(
                    .wns,
                    "<toast><visual><binding template=\"ToastText01\"><text id=\"1\">\(text)</text></binding></visual></toast>",
                    headers: [.init("X-WNS-Type", "wns/toast")]
                ),
            ] { _ = try await world.outcome(try #require(try await hub.send(notification, tags: "me"))) }
            for device in [phone, google, windows] { #expect(try await device.nextText() == text) }

            // A login, a wrong one, a secret and a picture.
            try await phone.login("alice")
            let password = "Passwort-4712"
            _ = try await world.backend(
                "GET",
                "/api/notifications/1",
                as: nil,
                fields: ["Authorization": basic("alice", password)]
            )
            _ = try await world.app("alice").sendSecure("Secret-4713", to: "alice")
            _ = try await phone.nextText()

            // Refused ones: what they hold is quoted to their sender, never to the log.
            let key =
                try world.connectionString(full: true).split(separator: "SharedAccessKey=").last.map(
                    String.init
                ) ?? ""
            let bad =
                "SharedAccessSignature sr=x&sig=Signature-4714&se=1&skn=DefaultFullSharedAccessSignature"
            for (method, path, body) in [
                ("POST", "/tidings/messages", "Payload-4711 that is no JSON"),
                ("GET", "/tidings/registrations", ""),
                ("PUT", "/tidings/registrations/1-2-3", "<Payload-4711"),
            ] {
                _ = try await world.request(
                    method,
                    try world.hubURL + path,
                    fields: ["Authorization": bad, "ServiceBusNotification-Format": "apple"],
                    body: Array(body.utf8)
                )
            }
            let token = "eyJhbGciOiJFUzI1NiIsImtpZCI6IkEifQ.eyJpc3MiOiJUIn0.VG9rZW4tNDcxNQ"
            for path in [
                "/3/device/\(try await phone.handle())", "/v1/projects/p/messages:send",
                "/wns/?token=Channel-4716", "/token", "/accesstoken.srf",
            ] {
                _ = try await world.request(
                    "POST",
                    try world.gatewayURL + path,
                    fields: ["Authorization": "bearer \(token)", "X-WNS-Type": "wns/toast"],
                    body: Array("assertion=Payload-4711&client_secret=Payload-4711".utf8)
                )
            }
            _ = try? await RawConnection.exchange(
                Array(
                    "POST /Payload-4711 HTTP/1.1\r\nHost: a\r\nAuthorization: \(bad)\r\nContent-Length: x\r\n\r\n"
                        .utf8
                ),
                with: try world.hubURL
            )
            // A platform that refuses: its answer is logged, its handle masked.
            try await world.registerNative("ABCDEF4717", .apns, tag: "gone")
            _ = try await world.outcome(
                try #require(
                    try await hub.send(.native(.apns, "{\"aps\":{\"alert\":\"\(text)\"}}"), tags: "gone")
                )
            )

            let folder = world.serverState + "/keys"
            let gateway = try JSONValue(parsing: try #require(try Files.read(folder + "/gateway.json")))
            collect(gateway, "gateway key", &secrets)
            secrets.merge([
                "payload": text, "password": password, "secret": "Secret-4713", "hub key": key,
                "signature": "Signature-4714",
                "bearer token": token, "channel": "Channel-4716", "dead handle": "ABCDEF4717",
                "basic credentials": String(basic("alice").dropFirst(6)),
            ]) { $1 }
            let log = String(decoding: world.logBytes, as: UTF8.self)
            #expect(log.contains("target_failed") && log.contains("send_ended"))
            for (name, secret) in secrets where secret.count > 8 {
                let line = log.split(separator: "\n").first { $0.lowercased().contains(secret.lowercased()) }
                #expect(line == nil, "\(name): \(line ?? "")")
            }
        }
    }

    /// Every text of the credentials that is not a public name.
    private func collect(_ value: JSONValue, _ path: String, _ secrets: inout [String: String]) {
        for member in value.objectValue?.members ?? [] {
            let path = path + "." + member.name
            let isSecret = ["key", "secret", "token"].contains { member.name.lowercased().contains($0) }
            if let text = member.value.stringValue, isSecret, !member.name.lowercased().hasSuffix("id") {
                secrets[path] = text
            }
            collect(member.value, path, &secrets)
        }
    }
}

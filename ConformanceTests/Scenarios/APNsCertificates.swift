import HTTPMessages
import HTTPServing
import HubClient
import HubCore
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import PushTelemetry
import Synchronization
import TLSTransport
import Testing
import TidingsConformance
import TidingsModels

/// Providers that a certificate proves (push services reference, section 1.7).
@Suite("Certificates of providers")
struct ProviderCertificates {
    private func issued(_ world: World) throws -> [UInt8] {
        let path = try #require(try world.server.endpoints.apnsCertificateFile)
        return try #require(try Files.read(path))
    }

    /// A hub with this certificate towards the world's gateway, and a device registered there under the tag `me`.
    private func hub(_ world: World, _ certificate: [UInt8]) async throws -> (HubClient, WorldDevice) {
        let hub = try await world.describedHub([
            .apns: ["ApnsCertificate": Base64.encode(certificate), "Endpoint": try world.gatewayURL]
        ])
        let device = try await world.device("phone", .apns)
        _ = try await hub.create(
            RegistrationContent(
                handle: try PlatformHandle(try await device.handle(), platform: .apns),
                tags: [try HubTag("me")]
            )
        )
        return (hub, device)
    }

    private func outcomes(_ hub: HubClient) async throws -> [Platform: [Outcome: Int]] {
        let id = try #require(try await hub.send(.native(.apns, #"{"aps":{"alert":"hi"}}"#), tags: "me"))
        return try await hub.finalDetails(id, every: .milliseconds(5)).outcomes
    }

    @Test("a hub whose description holds a certificate: the push arrives under the certificate's topic")
    func described() async throws {
        try await World.run { world in
            let (hub, device) = try await hub(world, try issued(world))
            #expect(try await outcomes(hub) == [.apns: [.success: 1]])
            #expect(try await device.nextText() == "hi")
        }
    }

    @Test(
        "a stranger's certificate is refused by the door, as are descriptions without key, password or topic"
    )
    func refused() async throws {
        try await World.run { world in
            let stranger = try ClientIdentity.make(name: "x", userID: "net.example.other")
            let (hub, _) = try await hub(world, stranger.pem)
            #expect(try await outcomes(hub) == [.apns: [.invalidCredentials: 1]])
            #expect(try await hub.registrations().count == 1)
            let management = NamespaceClient(hub)
            let text = String(decoding: try issued(world), as: UTF8.self)
            let keyless = try #require(text.split(separator: "-----BEGIN PRIVATE KEY-----").first)
            for (bad, reason) in [
                ("%%%", "base64"), (Base64.encode(Array("nonsense".utf8)), "PKCS#12"),
                (Base64.encode(Array(keyless.utf8)), "private key"),
            ] {
                let error = await #expect(throws: HubError.self) {
                    try await management.update(
                        HubDescription(
                            name: "garden",
                            credentials: [
                                .apns: ["ApnsCertificate": bad, "Endpoint": try world.gatewayURL]
                            ]
                        )
                    )
                }
                #expect(error?.code == .badRequest && error?.message.contains(reason) == true, "\(bad)")
            }
        }
    }

    @Test("the door: no topic needed, a topic of one's own taken, without token and certificate refused")
    func door() async throws {
        try await World.run { world in
            let device = try await world.device("phone", .apns)
            let url = try #require(HTTPURL(try world.gatewayURL + "/3/device/" + (try await device.handle())))
            let identity = try ClientIdentity(try issued(world))
            var trust = OutboundTrust()
            trust.authorityFiles[try world.gatewayURL] = try world.authorityFile
            let certified = HTTPClient(
                trust: trust,
                showing: (identity.certificateChain, identity.privateKey)
            )
            let bare = HTTPClient(trust: trust)
            let body = Array(#"{"aps":{"alert":"hi"}}"#.utf8)
            for topic in [nil, "net.example.tidings.voip"] {
                var fields: HTTPFields = [:]
                fields["apns-topic"] = topic
                let answer = try await certified.send(
                    OutboundRequest("POST", url, fields: fields, body: body)
                )
                #expect(answer.status.code == 200, "\(answer.text)")
                #expect(try await device.nextText() == "hi")
            }
            let refused = try await bare.send(OutboundRequest("POST", url, body: body))
            #expect(refused.status.code == 403 && refused.text.contains("MissingProviderToken"))
            world.clock.advance(by: .seconds(3651 * 86400))
            let late = try await certified.send(OutboundRequest("POST", url, body: body))
            #expect(late.status.code == 403 && late.text.contains("BadCertificate"))
        }
    }

    @Test("Windows phones: a server that asks for a certificate is shown the hub's")
    func phones() async throws {
        let authority = try DevelopmentAuthority.make()
        let leaf = try authority.makeLeaf()
        let shown = Mutex<[UInt8]?>(nil)
        let server = HTTPServer(
            tls: try TLSContext.server(
                certificateChain: leaf.certificateChain,
                privateKey: leaf.privateKey
            ),
            log: Log("phones", to: .inMemory()),
            counters: Counters(),
            httpDate: { "Sun, 06 Nov 1994 08:49:37 GMT" },
            asksForCertificate: true
        ) { request in
            shown.withLock { $0 = request.clientCertificateHash }
            return HTTPResponse(200)
        }
        let port = try server.start(host: "127.0.0.1", port: 0)
        let folder = try Files.makeScratchFolder("tidings-certificates")
        defer { Files.removeTree(folder) }
        try Files.replace(folder + "/ca.pem", with: authority.certificate)
        let origin = "https://localhost:\(port)"
        let identity = try ClientIdentity.make(name: "phones", userID: "p")
        let client = HTTPClient(
            trust: OutboundTrust(authorityFiles: [origin: folder + "/ca.pem"]),
            showing: (identity.certificateChain, identity.privateKey)
        )
        let url = try #require(HTTPURL(origin + "/mpns/x"))
        #expect(try await client.send(OutboundRequest("POST", url, body: [])).status.code == 200)
        #expect(shown.withLock { $0 } == identity.fingerprint)
        await server.drain(within: .zero)
    }
}

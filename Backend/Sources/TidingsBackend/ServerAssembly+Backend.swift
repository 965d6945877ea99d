import AppBackend
import EventLoops
import HTTPMessages
import HubClient
import OutboundHTTP
import ProcessLifecycle
import PushTelemetry
import TidingsModels

/// The app back end.
extension ServerAssembly {
    mutating func startBackend() async throws {
        guard configuration.services.contains(.backend) else { return }
        let store = try BackendStore(path: configuration.statePath + "/backend.sqlite")
        backendStore = store
        add(store.database, "backend")
        let text: String
        if let configured = configuration.backendHub {
            text = configured
        } else if let own = endpoints.connectionStrings[configuration.backendHubName]?[AccessPolicy.fullName]
        {
            text = own
        } else {
            throw ConfigurationError(
                "backend.hub is missing: the connection string of the hub that the app back end uses (there is no hub '\(configuration.backendHubName)' here)"
            )
        }
        let connection = try HubConnectionString(parsing: text)
        var trust = OutboundTrust()
        if let file = configuration.backendAuthorityFile ?? endpoints.authorityFile {
            trust.authorityFiles[connection.endpoint.origin] = file
        }
        let client = HubClient(
            connection,
            hub: configuration.backendHubName,
            client: HTTPClient(trust: trust, userAgent: "tidings-backend"),
            time: time
        )
        var settings = BackendConfiguration(uploadFolder: configuration.statePath + "/files")
        settings.sample = configuration.sample
        settings.isCompatibilityMode = configuration.isCompatibilityMode
        settings.uploadByteCountMax = configuration.uploadByteCountMax
        if let file = configuration.samplePictureFile {
            guard let bytes = try Files.read(file) else {
                throw ConfigurationError("backend.samplePicture '\(file)' does not exist")
            }
            settings.samplePicture = (
                bytes, file.hasSuffix(".jpg") || file.hasSuffix(".jpeg") ? "image/jpeg" : "image/png"
            )
        }
        let verifier: any CredentialVerifier =
            configuration.verifier
            ?? (configuration.isDevelopment ? BasicVerifier.tutorial : passwordVerifier(store))
        let service = AppBackendService(
            configuration: settings,
            store: store,
            hub: client,
            verifier: verifier,
            tagPolicy: configuration.tagPolicy,
            sendPolicy: configuration.sendPolicy,
            time: time,
            log: log.named("backend"),
            counters: counters,
            blocking: { try await EventLoopGroup.shared.next().runBlocking($0) }
        )
        backend = service
        endpoints.backend = try listen(configuration.backendAddress, "backend") {
            await service.respond(to: $0)
        }
    }

    /// Passwords of `tidings users`, with scrypt on the worker pool.
    func passwordVerifier(_ store: BackendStore) -> BasicVerifier {
        let passwords = PasswordChecker(
            time: time,
            counters: counters,
            passwordHash: { try await store.passwordHash($0) },
            blocking: { try await EventLoopGroup.shared.next().runBlocking($0) }
        )
        return BasicVerifier { await passwords.check($0, $1, from: $2) }
    }
}

import ProcessLifecycle
import TLSTransport

/// Certificates of the listeners.
extension ServerAssembly {
    /// Nil when the configuration names no certificate.
    static func configuredTLS(_ configuration: ServerConfiguration) throws -> TLSContext? {
        guard let certificate = configuration.certificateFile, let key = configuration.privateKeyFile else {
            return nil
        }
        guard let chain = try Files.read(certificate) else {
            throw ConfigurationError("tls.certificate '\(certificate)' does not exist")
        }
        guard let keyBytes = try Files.read(key) else {
            throw ConfigurationError("tls.key '\(key)' does not exist")
        }
        do { return try TLSContext.server(certificateChain: chain, privateKey: keyBytes) } catch {
            throw ConfigurationError("tls.certificate and tls.key cannot be used: \(error)")
        }
    }

    /// The certificate authority is made once and kept; the leaf is made at each start.
    static func developmentTLS(_ folder: StateFolder) throws -> (TLSContext, file: String) {
        let path = try folder.folder("ca")
        let authority: DevelopmentAuthority
        if let certificate = try Files.read(path + "/ca.pem"), let key = try Files.read(path + "/ca-key.pem")
        {
            authority = DevelopmentAuthority(certificate: certificate, privateKey: key)
        } else {
            authority = try DevelopmentAuthority.make()
            try Files.replace(path + "/ca-key.pem", with: authority.privateKey)
            try Files.replace(path + "/ca.pem", with: authority.certificate, mode: 0o644)
        }
        let leaf = try authority.makeLeaf()
        return (
            try TLSContext.server(certificateChain: leaf.certificateChain, privateKey: leaf.privateKey),
            path + "/ca.pem"
        )
    }
}

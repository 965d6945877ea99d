package import TidingsModels

/// What a hub's description must satisfy (protocol reference, section 9.2).
package enum HubDescriptionRules {
    package static let bodyByteCountMax = 256 << 10
    private static let nameCountMax = 260
    private static let policyCountMax = 12
    private static let keyCountMax = 256
    private static let metadataCountMax = 1024
    private static let ttlMin = Duration.seconds(86400)

    /// The properties of a credential: those that it must have, and those that it may have.
    private static func properties(
        _ platform: Platform,
        _ given: Set<String>
    ) -> (needed: [String], allowed: [String]) {
        switch platform {
        case .apns where given.contains("ApnsCertificate"):
            (["ApnsCertificate"], ["Endpoint", "CertificateKey", "Thumbprint"])
        case .apns: (["KeyId", "AppId", "AppName", "Token"], ["Endpoint"])
        case .gcm: (["GoogleApiKey"], ["GcmEndpoint"])
        case .fcmV1: (["PrivateKey", "ProjectId", "ClientEmail"], ["Endpoint", "TokenUrl"])
        case .wns:
            (["PackageSid", "SecretKey"], ["WindowsLiveEndpoint", "WnsCertificate", "CertificateKey"])
        case .mpns: ([], ["MpnsCertificate", "CertificateKey", "Thumbprint"])
        case .adm: (["ClientId", "ClientSecret"], ["AuthTokenUrl", "SendUrlTemplate"])
        case .baidu: (["BaiduApiKey", "BaiduSecretKey"], ["BaiduEndPoint"])
        case .browser: (["Subject", "VapidPublicKey", "VapidPrivateKey"], [])
        case .xiaomi: (["AppSecret"], ["Endpoint"])
        }
    }

    private static let addresses: Set = [
        "Endpoint", "GcmEndpoint", "TokenUrl", "WindowsLiveEndpoint", "AuthTokenUrl", "SendUrlTemplate",
        "BaiduEndPoint",
    ]

    /// - Parameter isTrusted: Whether an address other than https may be a credential's: an operator's own gateway.
    package static func check(_ hub: HubDescription, isTrusted: (String) -> Bool) throws(HubError) {
        try checkName(hub.name)
        if let ttl = hub.registrationTTL, ttl < ttlMin {
            throw HubError(
                .badRequest,
                "RegistrationTtl \(DurationText.text(ttl)) is shorter than one day (P1D)."
            )
        }
        if let metadata = hub.userMetadata, metadata.count > metadataCountMax {
            throw HubError(
                .badRequest,
                "UserMetadata has \(metadata.count) characters, at most \(metadataCountMax) are allowed."
            )
        }
        try checkPolicies(hub.policies)
        for (platform, properties) in hub.credentials.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            try checkCredential(platform, properties, isTrusted)
        }
    }

    package static func checkName(_ name: String) throws(HubError) {
        let isLegal = name.utf8.allSatisfy {
            HubTag.isLegal($0) && $0 != UInt8(ascii: "@") && $0 != UInt8(ascii: "#")
                && $0 != UInt8(ascii: ":")
        }
        let ends = [name.utf8.first, name.utf8.last].allSatisfy {
            $0.map { $0 > 0x2F && $0 != 0x5F } ?? false
        }
        guard isLegal, ends, name.utf8.count <= nameCountMax else {
            throw HubError(
                .badRequest,
                "The hub name '\(name)' is not 1 to \(nameCountMax) ASCII letters, digits, '.', '_' and '-' that begin and end with a letter or digit."
            )
        }
    }

    package static func checkPolicies(_ policies: [AccessPolicy]) throws(HubError) {
        guard policies.count <= policyCountMax else {
            throw HubError(
                .badRequest,
                "The hub has \(policies.count) authorization rules, at most \(policyCountMax) are allowed."
            )
        }
        var names = Set<String>()
        for policy in policies {
            guard names.insert(policy.name).inserted else {
                throw HubError(.badRequest, "The authorization rule '\(policy.name)' stands twice.")
            }
            guard policy.name.count <= keyCountMax, policy.primaryKey.count <= keyCountMax,
                policy.secondaryKey.count <= keyCountMax
            else {
                throw HubError(
                    .badRequest,
                    "The name and the keys of a rule have at most \(keyCountMax) characters."
                )
            }
            guard !policy.rights.isEmpty else {
                throw HubError(
                    .badRequest,
                    "The rule '\(policy.name)' has no right. Rights are Listen, Manage and Send."
                )
            }
            guard !policy.rights.contains(.manage) || policy.rights == .full else {
                throw HubError(
                    .badRequest,
                    "The rule '\(policy.name)' has Manage, which stands with Listen and Send only."
                )
            }
        }
    }

    private static func checkCredential(
        _ platform: Platform,
        _ properties: [String: String],
        _ isTrusted: (String) -> Bool
    ) throws(HubError) {
        let given = Set(properties.filter { !$0.value.isEmpty }.keys)
        let (needed, optional) = Self.properties(platform, given)
        let name = "The \(platform.rawValue) credential"
        if platform == .apns, given.contains("ApnsCertificate"), given.contains("Token") {
            throw HubError(
                .badRequest,
                "\(name) has both a certificate (ApnsCertificate) and a token (Token); give one."
            )
        }
        if let missing = needed.first(where: { !given.contains($0) }) {
            throw HubError(
                .badRequest,
                "\(name) has no '\(missing)'. It needs \(needed.joined(separator: ", "))."
            )
        }
        if let unknown = given.subtracting(needed + optional).sorted().first {
            throw HubError(
                .badRequest,
                "\(name) has the property '\(unknown)', which is not known. Known are \((needed + optional).joined(separator: ", "))."
            )
        }
        for name in addresses.intersection(given).sorted() {
            let value = properties[name] ?? ""
            // The certificate gateways of old stand without a scheme.
            let isBareHost = platform == .apns && !value.contains("/")
            guard isBareHost || value.lowercased().hasPrefix("https://") || isTrusted(value) else {
                throw HubError(
                    .badRequest,
                    "The \(platform.rawValue) credential's '\(name)' '\(value)' is not an https address, and not one of an own gateway."
                )
            }
        }
    }
}

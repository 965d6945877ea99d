import HTTPMessages
import PlatformSenders
import TidingsModels

extension DescribedCredentials {
    /// An `MpnsCredential` without properties stands for unauthenticated channels.
    func mpns() throws -> MPNSSettings? {
        guard hub.credentials[.mpns] != nil else { return nil }
        return MPNSSettings(identity: try identity(.mpns, "MpnsCertificate"))
    }

    func adm() throws -> ADMSettings? {
        guard let values = hub.credentials[.adm], let secret = values["ClientSecret"], !secret.isEmpty else {
            return nil
        }
        do {
            return try ADMSettings(
                clientID: values["ClientId"] ?? "",
                clientSecret: secret,
                tokenURL: try address(.adm, "AuthTokenUrl", ADMSettings.tokenURLDefault),
                sendURL: values["SendUrlTemplate"] ?? ADMSettings.sendURLDefault
            )
        } catch let failure as ADMSettings.Failure {
            throw ConfigurationError("the adm credential's SendUrlTemplate \(failure)")
        }
    }

    func baidu() throws -> BaiduSettings? {
        guard let values = hub.credentials[.baidu], let secret = values["BaiduSecretKey"], !secret.isEmpty
        else { return nil }
        var endpoint = try address(.baidu, "BaiduEndPoint", BaiduSettings.endpointDefault)
        // The original's default is REST 2.0, which Baidu has shut down: 3.0 is elsewhere.
        if endpoint.host == "channel.api.duapp.com", let current = HTTPURL(BaiduSettings.endpointDefault) {
            endpoint = current
        }
        return BaiduSettings(
            apiKey: values["BaiduApiKey"] ?? "",
            secretKey: secret,
            endpoint: endpoint
        )
    }

    func xiaomi() throws -> XiaomiSettings? {
        guard let values = hub.credentials[.xiaomi], let secret = values["AppSecret"], !secret.isEmpty else {
            return nil
        }
        return XiaomiSettings(
            appSecret: secret,
            endpoint: try address(.xiaomi, "Endpoint", XiaomiSettings.endpointDefault)
        )
    }

    private func address(_ platform: Platform, _ name: String, _ fallback: String) throws -> HTTPURL {
        let text = hub.credentials[platform]?[name] ?? fallback
        guard let url = HTTPURL(text) else {
            throw ConfigurationError(
                "the \(platform.rawValue) credential's \(name) '\(text)' is not an address"
            )
        }
        return url
    }
}

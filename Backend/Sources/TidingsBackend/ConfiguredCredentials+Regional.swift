import JSONBytes
import PlatformSenders
import TidingsModels

/// The credentials of the services that are no browser's, Apple's, Google's or Windows'.
extension SettingsReader {
    func adm() throws -> ADMSettings {
        do {
            return try ADMSettings(
                clientID: try text("clientId"),
                clientSecret: try text("clientSecret"),
                tokenURL: try url("tokenURL", default: ADMSettings.tokenURLDefault),
                sendURL: object["sendURL"]?.stringValue ?? ADMSettings.sendURLDefault
            )
        } catch let failure as ADMSettings.Failure {
            throw ConfigurationError("\(place): 'sendURL' \(failure)")
        }
    }

    func baidu() throws -> BaiduSettings {
        BaiduSettings(
            apiKey: try text("apiKey"),
            secretKey: try text("secretKey"),
            endpoint: try url("endpoint", default: BaiduSettings.endpointDefault)
        )
    }

    func xiaomi() throws -> XiaomiSettings {
        XiaomiSettings(
            appSecret: try text("appSecret"),
            endpoint: try url("endpoint", default: XiaomiSettings.endpointDefault),
            packageName: object["packageName"]?.stringValue
        )
    }
}

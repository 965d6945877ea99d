package import HTTPMessages

/// A hub's credentials at Baidu's cloud push.
package struct BaiduSettings: Sendable, Equatable {
    package var apiKey: String
    package var secretKey: String
    /// Its scheme, host and port are used; the path is the service's.
    package var endpoint: HTTPURL

    package static let endpointDefault = "https://api.tuisong.baidu.com"

    package init(apiKey: String, secretKey: String, endpoint: HTTPURL) {
        self.apiKey = apiKey
        self.secretKey = secretKey
        self.endpoint = endpoint
    }

    /// `push/single_device` of REST 3.0; nil never, for an endpoint that is a URL.
    var address: HTTPURL? { HTTPURL(endpoint.origin + "/rest/3.0/push/single_device") }
}

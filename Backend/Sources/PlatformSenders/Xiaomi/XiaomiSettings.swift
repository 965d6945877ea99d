package import HTTPMessages

/// A hub's credentials at Mi Push.
package struct XiaomiSettings: Sendable, Equatable {
    package var appSecret: String
    /// Its scheme, host and port are used; the path is the service's.
    package var endpoint: HTTPURL
    /// The app that may get the messages (`restricted_package_name`); nil for every app of the account.
    package var packageName: String?

    package static let endpointDefault = "https://api.xmpush.xiaomi.com"

    package init(appSecret: String, endpoint: HTTPURL, packageName: String? = nil) {
        self.appSecret = appSecret
        self.endpoint = endpoint
        self.packageName = packageName
    }

    /// `message/regid` of version 3; nil never, for an endpoint that is a URL.
    var address: HTTPURL? { HTTPURL(endpoint.origin + "/v3/message/regid") }
}

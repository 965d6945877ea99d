import HubAPI
package import TidingsModels

extension PlatformHandle {
    /// A handle as a device shows it: for a browser the JSON of its subscription.
    package init(shown text: String, platform: Platform) throws(HubError) {
        self =
            platform == .browser
            ? try SubscriptionJSON.read(text, path: "handle") : try PlatformHandle(text, platform: platform)
    }
}

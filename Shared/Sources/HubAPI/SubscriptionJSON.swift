package import JSONBytes
package import TidingsModels

/// A browser's subscription as JSON: `endpoint` with `p256dh` and `auth` beside it (protocol reference, section 4.5), or below `keys`,
/// as `PushSubscription.toJSON()` of the Push API writes them.
package enum SubscriptionJSON {
    /// - Throws: ``HubError`` `.badRequest` naming the member, below `path`.
    package static func read(_ text: String, path: String) throws(HubError) -> PlatformHandle {
        guard let object = (try? JSONValue(parsing: Array(text.utf8)))?.objectValue else {
            throw refusal(path)
        }
        return try read(object, path: path)
    }

    static func refusal(_ path: String) -> HubError {
        HubError(
            .badRequest,
            "The \(path) of a browser must be an object with endpoint, p256dh and auth, or text that holds one."
        )
    }

    static func read(_ object: JSONObject, path: String) throws(HubError) -> PlatformHandle {
        let members = InstallationJSON.Members(object, path + "/")
        guard let endpoint = try members.string("endpoint") else {
            throw HubError(.badRequest, "'\(path)/endpoint' is missing.")
        }
        let keys =
            object.member(ignoringCase: "keys")?.objectValue.map {
                InstallationJSON.Members($0, path + "/keys/")
            } ?? members
        let subscription = SubscriptionKeys(
            p256dh: try keys.string("p256dh") ?? "",
            auth: try keys.string("auth") ?? ""
        )
        return try PlatformHandle(endpoint, platform: .browser, keys: subscription)
    }

    /// The object; nil for the handle of another platform.
    package static func value(_ handle: PlatformHandle) -> JSONValue? {
        handle.keys.map {
            .object([
                "endpoint": .string(handle.text), "p256dh": .string($0.p256dh), "auth": .string($0.auth),
            ])
        }
    }
}

import TidingsModels

/// The `MessageType` of a Baidu template, kept as a header of the template.
package enum BaiduMessageType {
    package static let header = "X-Baidu-Message-Type"
}

extension RegistrationXML {
    /// The element names of a platform.
    struct Names {
        let prefix: String
        /// The elements of the handle, in the order of the contract.
        let handles: [String]
        let headers: String?

        init(_ platform: Platform) {
            switch platform {
            case .apns: (prefix, handles, headers) = ("Apple", ["DeviceToken"], "Apns")
            case .gcm: (prefix, handles, headers) = ("Gcm", ["GcmRegistrationId"], nil)
            case .fcmV1: (prefix, handles, headers) = ("FcmV1", ["FcmV1RegistrationId"], nil)
            case .wns: (prefix, handles, headers) = ("Windows", ["ChannelUri"], "Wns")
            case .mpns: (prefix, handles, headers) = ("Mpns", ["ChannelUri"], "Mpns")
            case .adm: (prefix, handles, headers) = ("Adm", ["AdmRegistrationId"], nil)
            case .baidu: (prefix, handles, headers) = ("Baidu", ["BaiduUserId", "BaiduChannelId"], nil)
            case .browser: (prefix, handles, headers) = ("Browser", ["Endpoint", "P256DH", "Auth"], nil)
            case .xiaomi: (prefix, handles, headers) = ("Xiaomi", ["XiaomiRegistrationId"], nil)
            }
        }

        /// `Fcm` stands for the legacy service on the wire of some clients.
        static func platform(_ root: String) -> (Platform, isTemplate: Bool)? {
            for platform in Platform.allCases {
                let prefix = Names(platform).prefix
                if root == prefix + "RegistrationDescription" { return (platform, false) }
                if root == prefix + "TemplateRegistrationDescription" { return (platform, true) }
            }
            if root == "FcmRegistrationDescription" { return (.gcm, false) }
            if root == "FcmTemplateRegistrationDescription" { return (.gcm, true) }
            return nil
        }

        /// The elements of a handle with their values.
        func values(_ handle: PlatformHandle) -> [(name: String, value: String)] {
            let values: [String] =
                if let (user, channel) = handle.baiduIDs {
                    [user, channel]
                } else if let keys = handle.keys {
                    [handle.text, keys.p256dh, keys.auth]
                } else {
                    [handle.text]
                }
            return zip(handles, values).map { ($0, $1) }
        }

        /// Reads a handle from its elements.
        func handle(_ platform: Platform, _ value: (String) -> String?) throws(HubError) -> PlatformHandle {
            var values: [String] = []
            for name in handles {
                guard let text = value(name) ?? (platform == .gcm ? value("FcmRegistrationId") : nil) else {
                    throw HubError(.badRequest, "The element <\(name)> is missing or empty.")
                }
                values.append(text)
            }
            switch platform {
            case .baidu:
                guard !values[0].utf8.contains(UInt8(ascii: "-")) else {
                    throw HubError(
                        .badRequest,
                        "BaiduUserId '\(values[0])' holds '-', which parts it from the channel id."
                    )
                }
                return try PlatformHandle("\(values[0])-\(values[1])", platform: platform)
            case .browser:
                let keys = SubscriptionKeys(p256dh: values[1], auth: values[2])
                return try PlatformHandle(values[0], platform: platform, keys: keys)
            default: return try PlatformHandle(values[0], platform: platform)
            }
        }
    }
}

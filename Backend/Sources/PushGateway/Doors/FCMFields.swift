import JSONBytes

/// The fields of an FCM v1 message (Firebase: "REST Resource: projects.messages"). The service refuses every other, and
/// takes each in snake case or in camel case, as proto3's JSON mapping demands.
enum FCMFields {
    private indirect enum Shape {
        case value
        /// Any names.
        case map
        case object([String: Shape])
    }

    private static func values(_ names: String...) -> [String: Shape] {
        Dictionary(uniqueKeysWithValues: names.map { ($0, .value) })
    }

    private static let options = Shape.object(values("analytics_label"))

    private static let androidNotification = Shape.object(
        values(
            "title",
            "body",
            "icon",
            "color",
            "sound",
            "tag",
            "click_action",
            "body_loc_key",
            "title_loc_key",
            "channel_id",
            "ticker",
            "sticky",
            "event_time",
            "local_only",
            "notification_priority",
            "default_sound",
            "default_vibrate_timings",
            "default_light_settings",
            "visibility",
            "notification_count",
            "image",
            "proxy",
            "bypass_proxy_notification"
        ).merging([
            "body_loc_args": .value, "title_loc_args": .value, "vibrate_timings": .value,
            "light_settings": .object([
                "color": .object(values("red", "green", "blue", "alpha")), "light_on_duration": .value,
                "light_off_duration": .value,
            ]),
        ]) { first, _ in first }
    )

    private static let message = Shape.object(
        values("name", "token", "topic", "condition", "fid").merging([
            "data": .map, "notification": .object(values("title", "body", "image")),
            "android": .object(
                values(
                    "collapse_key",
                    "priority",
                    "ttl",
                    "restricted_package_name",
                    "direct_boot_ok",
                    "bandwidth_constrained_ok",
                    "restricted_satellite_ok"
                ).merging(["data": .map, "notification": androidNotification, "fcm_options": options]) {
                    first,
                    _ in first
                }
            ),
            "webpush": .object([
                "headers": .map, "data": .map, "notification": .map,
                "fcm_options": .object(values("link", "analytics_label")),
            ]),
            "apns": .object([
                "headers": .map, "payload": .map, "live_activity_token": .value,
                "fcm_options": .object(values("analytics_label", "image")),
            ]),
            "fcm_options": options,
        ]) { first, _ in first }
    )

    /// The first field that the service does not know, with its place below `message`.
    static func unknown(in object: JSONObject) -> (path: String, name: String)? {
        unknown(.object(object), message, "message")
    }

    private static func unknown(
        _ value: JSONValue,
        _ shape: Shape,
        _ path: String
    ) -> (path: String, name: String)? {
        switch (shape, value) {
        case (.object(let fields), .object(let object)):
            for member in object.members {
                let path = path + "." + member.name
                guard let shape = fields[member.name] ?? fields[snake(member.name)] else {
                    return (path, member.name)
                }
                if let found = unknown(member.value, shape, path) { return found }
            }
            return nil
        default: return nil
        }
    }

    /// `collapseKey` as `collapse_key`.
    private static func snake(_ name: String) -> String {
        name.reduce(into: "") { text, character in
            if character.isUppercase { text += "_" }
            text += character.lowercased()
        }
    }
}

import JSONBytes

/// The fields of a request to `messages:send` and their types (Firebase: "REST Resource: projects.messages"). The service
/// refuses every other, and takes each in snake case or in camel case, and null as absent, as proto3's JSON mapping demands.
enum FCMFields {
    private struct Shape: Sendable {
        enum Kind {
            case text, flag, list, map, object
            /// Also as text.
            case number
            /// The name of an enumeration's case, or its number.
            case choice
            /// `[a-zA-Z0-9-_.~%]{1,50}`.
            case label
            /// Passed on as it is.
            case any
        }
        var kind: Kind
        /// Of a list or map: what each of them is.
        var element: [Shape] = []
        var fields: [String: Shape] = [:]
        var names: Set<String> = []

        static let text = Shape(kind: .text), flag = Shape(kind: .flag), number = Shape(kind: .number)
        static let label = Shape(kind: .label), any = Shape(kind: .any)
        static func list(_ element: Shape) -> Shape { Shape(kind: .list, element: [element]) }
        /// Any names.
        static func map(_ element: Shape) -> Shape { Shape(kind: .map, element: [element]) }
        static func choice(_ names: Set<String>) -> Shape { Shape(kind: .choice, names: names) }
    }

    private static func each(_ shape: Shape, _ names: String...) -> [String: Shape] {
        Dictionary(uniqueKeysWithValues: names.map { ($0, shape) })
    }

    private static func object(_ parts: [String: Shape]...) -> Shape {
        Shape(kind: .object, fields: parts.reduce(into: [:]) { $0.merge($1) { first, _ in first } })
    }

    private static let options = object(["analytics_label": .label])

    private static let androidNotification = object(
        each(
            .text,
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
            "event_time",
            "image"
        ),
        each(
            .flag,
            "sticky",
            "local_only",
            "default_sound",
            "default_vibrate_timings",
            "default_light_settings",
            "bypass_proxy_notification"
        ),
        each(.list(.text), "body_loc_args", "title_loc_args", "vibrate_timings"),
        [
            "notification_count": .number,
            "notification_priority": .choice([
                "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH",
                "PRIORITY_MAX",
            ]),
            "visibility": .choice(["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"]),
            "proxy": .choice(["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"]),
            "light_settings": object(
                ["color": object(each(.number, "red", "green", "blue", "alpha"))],
                each(.text, "light_on_duration", "light_off_duration")
            ),
        ]
    )

    private static let message = object(
        each(.text, "name", "token", "topic", "condition", "fid"),
        [
            "data": .map(.text), "notification": object(each(.text, "title", "body", "image")),
            "android": object(
                each(.text, "collapse_key", "priority", "ttl", "restricted_package_name"),
                each(.flag, "direct_boot_ok", "bandwidth_constrained_ok", "restricted_satellite_ok"),
                ["data": .map(.text), "notification": androidNotification, "fcm_options": options]
            ),
            "webpush": object([
                "headers": .map(.text), "data": .map(.text), "notification": .map(.any),
                "fcm_options": object(["link": .text, "analytics_label": .label]),
            ]),
            "apns": object([
                "headers": .map(.text), "payload": .map(.any), "live_activity_token": .text,
                "fcm_options": object(["image": .text, "analytics_label": .label]),
            ]),
            "fcm_options": options,
        ]
    )

    private static let request = object(["message": message, "validate_only": .flag])

    /// The first field that the service does not know or that has another type, with its place.
    static func fault(in request: JSONObject) -> (path: String, message: String)? {
        fault(.object(request), Self.request, "")
    }

    private static func fault(
        _ value: JSONValue,
        _ shape: Shape,
        _ path: String
    ) -> (path: String, message: String)? {
        func invalid(_ type: String) -> (path: String, message: String) {
            (path, "Invalid value at '\(path)' (\(type))")
        }
        func below(_ name: String) -> String { path.isEmpty ? name : path + "." + name }
        switch (shape.kind, value) {
        case (_, .null), (.any, _), (.text, .string), (.flag, .bool), (.number, .number),
            (.choice, .number):
            return nil
        case (.number, .string(let text)): return Double(text) == nil ? invalid("TYPE_INT32") : nil
        case (.choice, .string(let text)):
            return shape.names.contains(text.uppercased()) ? nil : invalid("TYPE_ENUM")
        case (.label, .string(let text)):
            let isLabel = text.utf8.count <= 50 && FCMCondition.topicName(text) == text
            return isLabel ? nil : (path, "The analytics label does not match [a-zA-Z0-9-_.~%]{1,50}")
        case (.list, .array(let values)):
            for (index, value) in values.enumerated() {
                for element in shape.element {
                    if let found = fault(value, element, "\(path)[\(index)]") { return found }
                }
            }
            return nil
        case (.map, .object(let object)):
            for (index, member) in object.members.enumerated() {
                for element in shape.element {
                    if let found = fault(member.value, element, "\(path)[\(index)].value") { return found }
                }
            }
            return nil
        case (.object, .object(let object)):
            for member in object.members {
                guard let shape = shape.fields[member.name] ?? shape.fields[snake(member.name)] else {
                    return (below(member.name), "Cannot find field: \(member.name)")
                }
                if let found = fault(member.value, shape, below(member.name)) { return found }
            }
            return nil
        case (.text, _), (.label, _): return invalid("TYPE_STRING")
        case (.flag, _): return invalid("TYPE_BOOL")
        case (.number, _): return invalid("TYPE_INT32")
        case (.choice, _): return invalid("TYPE_ENUM")
        case (.list, _): return invalid("an array is expected")
        case (.map, _), (.object, _): return invalid("an object is expected")
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

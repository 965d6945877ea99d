import HTTPMessages
import JSONBytes
package import TidingsModels

/// What a device sends on the autopush WebSocket (push services reference, section 6).
package enum DeviceFrame: Equatable, Sendable {
    /// `broadcasts` are the versions that the device has.
    case hello(uaid: String?, broadcasts: [BroadcastID: String] = [:])
    /// `platform` asks for a handle of that platform's shape; nil means Web Push. It is our extension.
    case register(channelID: String, key: String?, platform: Platform?)
    case unregister(channelID: String, code: Int)
    case ack([Ack])
    case nack(version: String, code: Int)
    case ping
    case broadcastSubscribe([BroadcastID: String])

    package struct Ack: Equatable, Sendable {
        package var channelID: String
        package var version: String
        package var code: Int

        package init(channelID: String, version: String, code: Int = 100) {
            self.channelID = channelID
            self.version = version
            self.code = code
        }
    }

    /// Reads a text frame.
    package init(parsing text: String) throws(LinkViolation) {
        let object = try LinkJSON.object(text)
        func string(_ name: String) throws(LinkViolation) -> String {
            guard let value = object[name]?.stringValue else {
                throw LinkViolation.json("the member '\(name)' must be a string")
            }
            return value
        }
        switch object["messageType"]?.stringValue {
        case "hello":
            let broadcasts = object["broadcasts"].flatMap { $0 == .null ? nil : $0 }
            self = .hello(
                uaid: object["uaid"]?.stringValue,
                broadcasts: try broadcasts.map { json throws(LinkViolation) in try LinkJSON.broadcasts(json) }
                    ?? [:]
            )
        case "register":
            var platform: Platform?
            if let name = object["platform"]?.stringValue {
                guard let known = Platform(appName: name) else {
                    throw LinkViolation.json("the platform '\(name)' is not known")
                }
                platform = known
            }
            self = .register(
                channelID: try LinkJSON.channelID(string("channelID")),
                key: object["key"]?.stringValue,
                platform: platform
            )
        case "unregister":
            self = .unregister(
                channelID: try LinkJSON.channelID(string("channelID")),
                code: object["code"]?.integerValue ?? 200
            )
        case "ack":
            var acks: [Ack] = []
            for update in object["updates"]?.arrayValue ?? [] {
                guard let version = update["version"]?.stringValue else {
                    throw LinkViolation.json("an update has no version")
                }
                acks.append(
                    Ack(
                        channelID: update["channelID"]?.stringValue ?? "",
                        version: version,
                        code: update["code"]?.integerValue ?? 100
                    )
                )
            }
            self = .ack(acks)
        case "nack": self = .nack(version: try string("version"), code: object["code"]?.integerValue ?? 0)
        case "ping": self = .ping
        case "broadcast_subscribe":
            self = .broadcastSubscribe(try LinkJSON.broadcasts(object["broadcasts"]))
        case nil where object.isEmpty: self = .ping
        default: throw LinkViolation.json("the messageType is not known")
        }
    }

    /// The text frame.
    package var text: String {
        switch self {
        case .hello(let uaid, let broadcasts):
            LinkJSON.text(
                [("messageType", "hello"), ("use_webpush", true)]
                    + (broadcasts.isEmpty
                        ? [] : [("broadcasts", .object(LinkJSON.members(broadcasts)))])
                    + (uaid.map { [("uaid", .string($0))] } ?? [])
            )
        case .register(let channelID, let key, let platform):
            LinkJSON.text(
                [("messageType", "register"), ("channelID", .string(channelID))]
                    + (key.map { [("key", .string($0))] } ?? [])
                    + (platform.map { [("platform", .string($0.appName))] } ?? [])
            )
        case .unregister(let channelID, let code):
            LinkJSON.text([
                ("messageType", "unregister"), ("channelID", .string(channelID)), ("code", .number(code)),
            ])
        case .ack(let acks):
            LinkJSON.text([
                ("messageType", "ack"),
                (
                    "updates",
                    .array(
                        acks.map {
                            .object([
                                "channelID": .string($0.channelID), "version": .string($0.version),
                                "code": .number($0.code),
                            ])
                        }
                    )
                ),
            ])
        case .nack(let version, let code):
            LinkJSON.text([("messageType", "nack"), ("version", .string(version)), ("code", .number(code))])
        case .ping: "{}"
        case .broadcastSubscribe(let broadcasts):
            LinkJSON.text([
                ("messageType", "broadcast_subscribe"), ("broadcasts", .object(LinkJSON.members(broadcasts))),
            ])
        }
    }
}

/// A frame or a sequence of frames that the protocol does not allow, with the close code that answers it.
package struct LinkViolation: Error, Equatable, Sendable {
    package let closeCode: UInt16
    /// The close reason: an error name as autopush-rs sends it.
    package let name: String
    package let detail: String

    package init(closeCode: UInt16, name: String, detail: String) {
        self.closeCode = closeCode
        self.name = name
        self.detail = detail
    }

    package static func json(_ detail: String) -> LinkViolation {
        .init(closeCode: 1011, name: "Json", detail: detail)
    }
    package static func state(_ detail: String) -> LinkViolation {
        .init(closeCode: 1011, name: "SM", detail: detail)
    }
    package static let handshakeTimeout = LinkViolation(
        closeCode: 1011,
        name: "HandshakeTimeout",
        detail: "no hello in time"
    )
    package static let unsupported = LinkViolation(
        closeCode: 1003,
        name: "UnsupportedMessage",
        detail: "only text frames are allowed"
    )
}

enum LinkJSON {
    static func object(_ text: String) throws(LinkViolation) -> JSONObject {
        do throws(JSONError) {
            if case .object(let object) = try JSONValue(parsing: Array(text.utf8)) { return object }
        } catch {
            throw LinkViolation.json(error.description)
        }
        throw LinkViolation.json("a frame must be a JSON object")
    }

    static func text(_ members: [(String, JSONValue)]) -> String {
        var object = JSONObject()
        for (name, value) in members { object[name] = value }
        return JSONValue.object(object).text
    }

    /// A lower-case dashed UUID; other spellings are refused.
    static func channelID(_ text: String) throws(LinkViolation) -> String {
        let isUUID =
            text.utf8.count == 36
            && text.utf8.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : isLowerHex(byte)
            }
        guard isUUID else { throw LinkViolation.json("channelID must be a UUID in lower case with dashes") }
        return text
    }

    static func isLowerHex(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}

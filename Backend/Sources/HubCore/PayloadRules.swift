package import JSONBytes
package import TidingsModels
import XMLBytes

/// Turns what was sent, or what a template rendered, into what a platform's sender takes. Values only.
package enum PayloadRules {
    /// The largest payload of a platform, in bytes (vendor pages in the push services reference).
    package static func byteCountMax(_ platform: Platform, pushType: String? = nil) -> Int {
        switch platform {
        case .apns: pushType == "voip" ? 5120 : 4096
        case .gcm, .fcmV1: 4096
        case .wns: 5000
        case .mpns: 3072
        case .adm: 6144
        // One RFC 8188 record of 4096 bytes holds that much.
        case .browser: 3993
        case .baidu, .xiaomi: 4096
        }
    }

    /// Checks at the door that a native body is what its platform reads.
    /// - Throws: ``HubError`` `.badRequest` with the position of the fault.
    package static func checkNative(_ notification: HubNotification, _ platform: Platform) throws(HubError) {
        switch platform {
        case .apns, .gcm, .fcmV1, .adm, .baidu, .browser, .xiaomi:
            let object = try jsonObject(notification.body, platform)
            if platform == .fcmV1 {
                guard case .object(let message)? = object["message"] else {
                    throw HubError(
                        .badRequest,
                        "An fcmv1 notification must be a JSON object with the member 'message'."
                    )
                }
                for name in ["token", "topic", "condition", "fid"] where message[name] != nil {
                    throw HubError(
                        .badRequest,
                        "message.\(name) is not allowed: the hub addresses the message by tags."
                    )
                }
            }
        case .wns:
            guard try windowsType(notification.headers, notification.body) != "wns/raw" else { return }
            _ = try xml(notification.body, .wns)
        case .mpns: try checkPhone(notification)
        }
    }

    /// The payload for the registrations of one platform.
    ///
    /// - Parameter hasLegacyCredentials: False makes a legacy Google payload an FCM v1 one.
    package static func payload(
        _ body: [UInt8],
        headers: [RegistrationTemplate.Header],
        platform: Platform,
        hasLegacyCredentials: Bool = false
    ) throws(PayloadRefusal) -> PlatformPayload {
        do throws(HubError) {
            switch platform {
            case .apns: return try apple(body, headers)
            case .fcmV1: return try fcmV1(try jsonObject(body, platform))
            case .gcm:
                let object = try jsonObject(body, platform)
                if hasLegacyCredentials { return PlatformPayload(platform: .gcm, headers: [], body: body) }
                return try fcmV1(GoogleTranslation.fcmV1(from: object))
            case .wns: return try windows(body, headers)
            case .mpns: return try phone(body, headers)
            case .adm, .baidu, .browser, .xiaomi: return try plain(body, headers, platform)
            }
        } catch {
            throw PayloadRefusal(
                outcome: error.code == .tooLarge ? .invalidNotificationSize : .invalidNotificationFormat,
                reason: error.message
            )
        }
    }

    static func tooLarge(_ count: Int, _ countMax: Int, _ platform: Platform) -> HubError {
        HubError(
            .tooLarge,
            "The \(platform.format) payload has \(count) bytes, at most \(countMax) are allowed."
        )
    }

    private static func jsonObject(_ body: [UInt8], _ platform: Platform) throws(HubError) -> JSONObject {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: body) } catch {
            throw HubError(.badRequest, "The \(platform.format) notification is not JSON: \(error).")
        }
        guard case .object(let object) = value else {
            throw HubError(.badRequest, "The \(platform.format) notification must be a JSON object.")
        }
        return object
    }

    /// A payload that goes as it is.
    private static func plain(
        _ body: [UInt8],
        _ headers: [RegistrationTemplate.Header],
        _ platform: Platform
    ) throws(HubError) -> PlatformPayload {
        guard body.count <= byteCountMax(platform) else {
            throw tooLarge(body.count, byteCountMax(platform), platform)
        }
        return PlatformPayload(platform: platform, headers: headers, body: body)
    }

    // MARK: Apple

    private static func apple(
        _ body: [UInt8],
        _ given: [RegistrationTemplate.Header]
    ) throws(HubError) -> PlatformPayload {
        let object = try jsonObject(body, .apns)
        var headers = given.filter { $0.name.lowercased().hasPrefix("apns-") }.map {
            RegistrationTemplate.Header($0.name.lowercased(), $0.value)
        }
        func has(_ name: String) -> Bool { headers.contains { $0.name == name } }
        if !has("apns-push-type") {
            // Since iOS 13 Apple drops silent pushes that do not say so.
            let isBackground = isSilent(object)
            headers.append(.init("apns-push-type", isBackground ? "background" : "alert"))
        }
        // Apple's default of 10 is an error for a background push.
        if headers.contains(.init("apns-push-type", "background")), !has("apns-priority") {
            headers.append(.init("apns-priority", "5"))
        }
        let pushType = headers.first { $0.name == "apns-push-type" }?.value
        let countMax = byteCountMax(.apns, pushType: pushType)
        guard body.count <= countMax else { throw tooLarge(body.count, countMax, .apns) }
        return PlatformPayload(platform: .apns, headers: headers, body: body)
    }

    /// `content-available` without anything to show. An empty sound does not count.
    private static func isSilent(_ object: JSONObject) -> Bool {
        guard case .object(let aps)? = object["aps"], aps["content-available"] == 1 else { return false }
        let sound = aps["sound"]
        return aps["alert"] == nil && aps["badge"] == nil && (sound == nil || sound == "")
    }

    // MARK: Google

    private static func fcmV1(_ object: JSONObject) throws(HubError) -> PlatformPayload {
        guard case .object(let message)? = object["message"] else {
            throw HubError(.badRequest, "An fcmv1 payload must have the member 'message'.")
        }
        let count = messageByteCount(message)
        guard count <= byteCountMax(.fcmV1) else { throw tooLarge(count, byteCountMax(.fcmV1), .fcmV1) }
        var bytes = Array("{\"message\":{\"token\":".utf8)
        let offset = bytes.count
        for member in message.members where !["token", "topic", "condition", "fid"].contains(member.name) {
            bytes.append(UInt8(ascii: ","))
            JSONWriter.write(member.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            member.value.write(to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        if let validateOnly = object["validate_only"] {
            bytes += "\"validate_only\":".utf8
            bytes.insert(UInt8(ascii: ","), at: bytes.count - "\"validate_only\":".utf8.count)
            validateOnly.write(to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
        return PlatformPayload(platform: .fcmV1, headers: [], body: bytes, tokenOffset: offset)
    }

    /// What Google counts: keys and values of the data, and the notification's texts.
    package static func messageByteCount(_ message: JSONObject) -> Int {
        var count = 0
        if case .object(let data)? = message["data"] {
            for member in data.members {
                count += member.name.utf8.count + (member.value.stringValue ?? member.value.text).utf8.count
            }
        }
        if case .object(let notification)? = message["notification"] {
            for member in notification.members {
                count += (member.value.stringValue ?? member.value.text).utf8.count
            }
        }
        return count
    }

    // MARK: Windows

    static func xml(_ body: [UInt8], _ platform: Platform) throws(HubError) -> XMLElement {
        do throws(XMLError) { return try XMLElement(parsing: body) } catch {
            throw HubError(.badRequest, "The \(platform.format) notification is not XML: \(error).")
        }
    }

    /// The given `X-WNS-Type`, or the one that the root element stands for.
    private static func windowsType(
        _ headers: [RegistrationTemplate.Header],
        _ body: [UInt8]
    ) throws(HubError) -> String {
        if let given = headers.first(where: { $0.name.lowercased() == "x-wns-type" })?.value {
            return given.lowercased()
        }
        guard let root = try? XMLElement(parsing: body),
            ["toast", "tile", "badge"].contains(root.name.local.lowercased())
        else {
            throw HubError(
                .badRequest,
                "X-WNS-Type is missing and the body is not XML with the root toast, tile or badge; for raw bytes send X-WNS-Type: wns/raw."
            )
        }
        return "wns/" + root.name.local.lowercased()
    }

    private static func windows(
        _ body: [UInt8],
        _ given: [RegistrationTemplate.Header]
    ) throws(HubError) -> PlatformPayload {
        let type = try windowsType(given, body)
        var headers = given.filter {
            $0.name.lowercased().hasPrefix("x-wns-") && $0.name.lowercased() != "x-wns-type"
        }
        headers.insert(.init("X-WNS-Type", type), at: 0)
        headers.append(.init("Content-Type", type == "wns/raw" ? "application/octet-stream" : "text/xml"))
        let bytes = type == "wns/raw" ? body : withoutDeclaration(body)
        guard !bytes.isEmpty else { throw HubError(.badRequest, "A windows notification must not be empty.") }
        guard bytes.count <= byteCountMax(.wns) else { throw tooLarge(bytes.count, byteCountMax(.wns), .wns) }
        return PlatformPayload(platform: .wns, headers: headers, body: bytes)
    }

    /// .NET declares utf-16 over UTF-8 bytes; without a declaration XML is UTF-8.
    static func withoutDeclaration(_ body: [UInt8]) -> [UInt8] {
        guard body.starts(with: "<?xml".utf8), let end = body.firstIndex(of: UInt8(ascii: ">")) else {
            return body
        }
        return Array(body[(end + 1)...].drop { $0 <= 0x20 })
    }
}

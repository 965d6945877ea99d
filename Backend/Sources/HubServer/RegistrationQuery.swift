package import HTTPMessages
package import HubCore
package import TidingsModels

/// The query parameters of a registration list (protocol reference, section 3.6).
package enum RegistrationQuery {
    package static func countMax(_ target: RequestTarget) throws(HubError) -> Int {
        guard let text = target.parameter("$top") else { return Hub.pageCountMax }
        guard let count = Int(text), count > 0 else {
            throw HubError(.badRequest, "$top '\(text)' is not a number from 1.")
        }
        return min(count, Hub.pageCountMax)
    }

    package static func skip(_ target: RequestTarget) throws(HubError) -> Int? { try number("$skip", target) }

    static func number(_ name: String, _ target: RequestTarget) throws(HubError) -> Int? {
        guard let text = target.parameter(name) else { return nil }
        guard let count = Int(text), count >= 0 else {
            throw HubError(.badRequest, "\(name) '\(text)' is not a number from 0.")
        }
        return count
    }

    /// Characters that need no encoding: some SDKs echo the token as it is, others encode it.
    package static func token(_ number: UInt32) -> String { Base64.encodeURL(Array("n\(number)".utf8)) }

    package static func continuation(_ target: RequestTarget) throws(HubError) -> UInt32? {
        guard let token = target.parameter("continuationtoken"), !token.isEmpty else { return nil }
        guard let bytes = Base64.decode(token), bytes.first == UInt8(ascii: "n"),
            let number = UInt32(String(decoding: bytes.dropFirst(), as: UTF8.self))
        else { throw HubError(.badRequest, "The continuation token is not one that this hub issued.") }
        return number
    }

    /// `<Field> eq '<value>'`; a doubled quote stands for a quote. `ChannelUri` means a handle of any platform.
    package static func filter(_ target: RequestTarget) throws(HubError) -> RegistrationFilter {
        guard let text = target.parameter("$filter"), !text.isEmpty else { return .all }
        let parts = ASCII.split(text, at: 0x20, maxSplits: 2, omitsEmpty: true)
        guard parts.count == 3, parts[1].lowercased() == "eq", let value = quoted(parts[2]) else {
            throw HubError(.badRequest, "$filter '\(text)' is not of the form <Field> eq '<value>'.")
        }
        switch parts[0].lowercased() {
        case "channeluri": return .handle(value, nil)
        case "devicetoken": return .handle(value, .apns)
        case "gcmregistrationid", "fcmregistrationid": return .handle(value, .gcm)
        case "fcmv1registrationid": return .handle(value, .fcmV1)
        case "admregistrationid": return .handle(value, .adm)
        case "xiaomiregistrationid": return .handle(value, .xiaomi)
        case "endpoint": return .handle(value, .browser)
        // Android joins both ids in either field.
        case "baiduuserid", "baiduchannelid": return .handle(value, .baidu)
        default:
            throw HubError(
                .badRequest,
                "$filter does not know the field '\(parts[0])'. Known are ChannelUri, DeviceToken, GcmRegistrationId, "
                    + "FcmRegistrationId, FcmV1RegistrationId, AdmRegistrationId, BaiduUserId, BaiduChannelId, Endpoint and XiaomiRegistrationId."
            )
        }
    }

    private static func quoted(_ text: String) -> String? {
        let quote = UInt8(ascii: "'")
        let trimmed = Array(ASCII.trimmed(text).utf8)
        guard trimmed.count >= 2, trimmed.first == quote, trimmed.last == quote else { return nil }
        var value: [UInt8] = []
        var isPending = false
        for byte in trimmed.dropFirst().dropLast() {
            if byte == quote {
                if isPending { value.append(quote) }
                isPending.toggle()
            } else {
                if isPending { return nil }
                value.append(byte)
            }
        }
        return isPending ? nil : String(decoding: value, as: UTF8.self)
    }
}

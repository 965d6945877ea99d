import DeviceLink
import HTTPMessages
import HubAPI
import HubCore
import JSONBytes
import PushCredentials
import TagIndex
import TidingsModels
import XMLBytes

extension FuzzTarget {
    /// JSON: what is taken is written and read as the same value.
    static let json = FuzzTarget(name: "json") { input in
        guard let value = try? JSONValue(parsing: input) else { return nil }
        return unchanged(value, value.text) { try JSONValue(parsing: value.serialized()) }
    }

    /// Atom entries of registrations: what is taken is written and read as the same registration.
    static let registrationXML = FuzzTarget(name: "registration-xml") { input in
        _ = try? RegistrationXML.readFeed(input)
        _ = try? RegistrationXML.readEntry(input)
        guard let request = try? RegistrationXML.readRequest(input) else { return nil }
        let text = RegistrationXML.request(request.content, id: nil)
        return unchanged(request.content, text) {
            try RegistrationXML.readRequest(Array(text.utf8)).content
        }
    }

    /// Tag expressions: the index finds exactly the registrations that the rule names.
    static let tagExpression = FuzzTarget(name: "tag-expression") { input in
        guard let expression = try? TagExpression(parsing: String(decoding: input, as: UTF8.self)) else {
            return nil
        }
        let names = expression.tags.prefix(6)
        guard !names.isEmpty else { return "an expression without a tag" }
        let index = RoaringIndex(seed: 1)
        var expected: [UInt32] = []
        for number in 0..<UInt32(1 << names.count) {
            let tags = names.enumerated().filter { number & (1 << $0.offset) != 0 }.map(\.element)
            let content = RegistrationContent(
                handle: PlatformHandle(unchecked: "AB", platform: .apns),
                tags: tags
            )
            index.apply(
                IndexChange(number: number, old: nil, new: IndexEntry(content), change: Int64(number))
            )
            if expression.matches(Set(tags)) { expected.append(number) }
        }
        let found = index.resolve(.native(.apns), expression).numbers(after: nil, countMax: 128)
        return found == expected ? nil : "the index found \(found) instead of \(expected)"
    }

    /// Templates, the first byte for the platform, then the body, NUL, the values: the body that comes out is well-formed.
    static let template = FuzzTarget(name: "template") { input in
        guard let first = input.first else { return nil }
        let platform = [Platform.apns, .fcmV1, .wns, .mpns][Int(first & 3)]
        let parts = input.dropFirst().split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        let body = String(decoding: parts[0], as: UTF8.self)
        guard let template = try? CompiledTemplate(RegistrationTemplate(body: body), platform: platform)
        else {
            return nil
        }
        let values = (parts.count > 1 ? try? TemplateValues.read(Array(parts[1])) : nil) ?? [:]
        let rendered = template.render(values).body
        if rendered.first(where: { $0 > 0x20 }) == UInt8(ascii: "<") {
            do { _ = try XMLElement(parsing: rendered) } catch {
                return "\(error): \(String(decoding: rendered, as: UTF8.self))"
            }
        } else {
            do { _ = try JSONValue(parsing: rendered) } catch {
                return "\(error): \(String(decoding: rendered, as: UTF8.self))"
            }
        }
        return nil
    }

    /// Access signatures: none is valid under a key that did not make it, and a made one is.
    static let accessSignature = FuzzTarget(name: "access-signature") { input in
        guard let signature = try? SharedAccessSignature(parsing: String(decoding: input, as: UTF8.self))
        else {
            return nil
        }
        _ = signature.audience
        // The corpus holds none of this key, and HMAC-SHA-256 is not guessed.
        if signature.isSigned(with: "a key that signed nothing") { return "a forged signature was taken" }
        let own = SharedAccessSignature.make(
            resource: signature.resource,
            keyName: signature.keyName,
            key: "k",
            expires: Timestamp(seconds: 1_900_000_000)
        )
        guard let again = try? SharedAccessSignature(parsing: own) else { return "'\(own)' is not read" }
        return again.isSigned(with: "k") && again.keyName == signature.keyName ? nil : "'\(own)' is not valid"
    }

    /// Frames of the device link, both directions.
    static let deviceLink = FuzzTarget(name: "device-link") { input in
        let text = String(decoding: input, as: UTF8.self)
        if let frame = try? DeviceFrame(parsing: text),
            let problem = unchanged(frame, frame.text, { try DeviceFrame(parsing: frame.text) })
        {
            return problem
        }
        guard let frame = try? GatewayFrame(parsing: text) else { return nil }
        return unchanged(frame, frame.text) { try GatewayFrame(parsing: frame.text) }
    }

    /// Signed tokens that provider libraries bring.
    static let webToken = FuzzTarget(name: "web-token") { input in
        guard let token = WebToken(String(decoding: input, as: UTF8.self)) else { return nil }
        _ = token.seconds("exp")
        return token.isSigned(by: key) ? "a forged token was taken" : nil
    }

    private static let key: SigningKey = {
        do { return try SigningKey.generate(.es256) } catch { preconditionFailure("\(error)") }
    }()
}

import HTTPMessages
import HubAPI
import HubCore
import HubServer
import JSONBytes
import TidingsModels

/// Bodies and queries of the hub's REST API.
extension FuzzTarget {
    /// Batch bodies, the boundary up to the first line end, then the body: what is taken is written and read as the same parts.
    static let multipart = FuzzTarget(name: "multipart") { input in
        let split = input.firstIndex(of: 0x0A) ?? input.endIndex
        let head = String(decoding: input[..<split], as: UTF8.self)
        _ = MultipartMixed.boundary(contentType: head)
        let boundary = String(head.unicodeScalars.filter { $0.value > 0x20 && $0.value < 0x7F })
        guard !boundary.isEmpty,
            let read = try? MultipartMixed(parsing: Array(input[split...]), boundary: boundary)
        else { return nil }
        let other = "tidings-\(input.count)-unlikely"
        let bytes = read.bytes(boundary: other)
        return unchanged(read, String(decoding: bytes, as: UTF8.self)) {
            try MultipartMixed(parsing: bytes, boundary: other)
        }
    }

    /// Installations: what is taken is written and read as the same one, and its registrations are checked without a trap.
    static let installation = FuzzTarget(name: "installation") { input in
        guard let read = try? InstallationJSON.read(input, id: "i") else { return nil }
        try? InstallationRules.check(read)
        let text = InstallationJSON.value(read).text
        return unchanged(read, text) { try InstallationJSON.read(Array(text.utf8), id: "i") }
    }

    /// Patches, applied to an installation that has something under every path.
    static let installationPatch = FuzzTarget(name: "installation-patch") { input in
        guard let patch = try? InstallationPatch(input), let patched = try? patch.applied(to: example) else {
            return nil
        }
        let text = InstallationJSON.value(patched).text
        return unchanged(patched, text) { try InstallationJSON.read(Array(text.utf8), id: example.id) }
    }

    private static let example: Installation = {
        var template = InstallationTemplate(name: "t", body: #"{"a":"$(b)"}"#)
        template.headers = [.init("X-WNS-Type", "wns/raw")]
        template.tags = [HubTag(unchecked: "z")]
        let handle = PlatformHandle(unchecked: "https://a.notify.windows.com/x", platform: .wns)
        return Installation(
            id: "i",
            handle: handle,
            userID: "u",
            tags: [HubTag(unchecked: "a")],
            pushVariables: ["n": "v"],
            templates: [template],
            secondaryTiles: [SecondaryTile(name: "s", handle: handle, templates: [template])]
        )
    }()

    /// Lines of imports, the first byte for the kind: what is taken as a creation is written and read as the same line.
    static let jobLine = FuzzTarget(name: "job-line") { input in
        guard let first = input.first else { return nil }
        let kind = HubJob.Kind.allCases[Int(first) % HubJob.Kind.allCases.count]
        let line = Array(input.dropFirst())
        guard
            case .create(_, let content)? = try? JobRules.step(
                line,
                kind,
                ChannelRules(.original, SenderDirectory())
            )
        else { return nil }
        let registration = Registration(
            id: RegistrationID(unchecked: "1-2-3"),
            etag: 1,
            expires: .never,
            updated: Timestamp(seconds: 0),
            content: content
        )
        let text = RegistrationXML.line(registration)
        if text.utf8.contains(0x0A) || text.utf8.contains(0x0D) { return "a line with a line end: \(text)" }
        return unchanged(content, text) { try RegistrationXML.readLine(Array(text.utf8)).content }
    }

    /// Queries of registration lists: filter, page size and continuation token.
    static let registrationQuery = FuzzTarget(name: "registration-query") { input in
        let text = String(decoding: input, as: UTF8.self)
        guard let target = RequestTarget("/h/registrations?" + text) else { return nil }
        _ = try? RegistrationQuery.filter(target)
        _ = try? RegistrationQuery.countMax(target)
        _ = try? RegistrationQuery.skip(target)
        guard let number = try? RegistrationQuery.continuation(target) else { return nil }
        let token = RegistrationQuery.token(number)
        guard let again = RequestTarget("/h/registrations?continuationtoken=" + token) else {
            return "the token '\(token)' is no query"
        }
        return unchanged(number, token) { try RegistrationQuery.continuation(again) ?? 0 }
    }
}

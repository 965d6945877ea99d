import HTTPMessages
import HubClient
import ProcessLifecycle
import PushCredentials
import TLSTransport
import TidingsConformance
import TidingsModels

/// What an SDK does with every request.
struct SDK: Sendable {
    var style: SignatureStyle
    /// Over HTTP/2 alone; else over HTTP/1.1.
    var isHTTP2 = false
    /// What it writes behind `Authorization`, in its order.
    var fields: HTTPFields = [:]
    /// What it looks at in each answer.
    var expectations: [SDKExpectation] = []
}

/// How an SDK signs (protocol reference, section 2.4).
enum SignatureStyle: Sendable {
    case dotNet, java, javaScript, apple, android, node

    /// - Parameter url: The address of the request.
    func header(_ url: String, keyName: String, key: String, expires: Int64) -> String {
        let lower = url.lowercased()
        let path = String(lower.prefix { $0 != "?" })
        let http = { (text: String) in "http" + text.drop { $0 != ":" } }
        let withoutPort = { (text: String) -> String in
            guard let parsed = HTTPURL(text) else { return text }
            return "\(parsed.scheme)://\(parsed.host)\(parsed.target)"
        }
        let root = lower.split(separator: "/").prefix(2).joined(separator: "//") + "/"
        let resource: String
        switch self {
        case .dotNet: resource = http(withoutPort(path)) + (path.hasSuffix("/") ? "" : "/")
        case .java, .android: resource = lower
        case .javaScript: resource = root
        case .apple: resource = http(lower)
        case .node:
            resource = path.split(separator: "/").prefix(3).enumerated().map {
                $0.offset == 0 ? "\($0.element)/" : String($0.element)
            }.joined(separator: "/")
        }
        let encoded = PercentEncoding.encode(resource, lowerCaseHex: self != .javaScript)
        let digest = Digests.hmacSHA256(key: Array(key.utf8), Array("\(encoded)\n\(expires)".utf8))
        let signature = PercentEncoding.encode(Base64.encode(digest), lowerCaseHex: self != .javaScript)
        let name = self == .dotNet || self == .javaScript ? PercentEncoding.encode(keyName) : keyName
        return "SharedAccessSignature sr=\(encoded)&sig=\(signature)&se=\(expires)&skn=\(name)"
    }
}

struct SDKAnswer: Sendable {
    var status: Int
    var fields: HTTPFields
    var body: String

    /// With the quotation marks that stood as entities.
    var plainBody: String { body.replacing("&quot;", with: "\"") }

    /// The id at the end of an address.
    var id: String {
        let location = fields["Location"] ?? ""
        return location.prefix { $0 != "?" }.split(separator: "/").last.map(String.init) ?? ""
    }
}

/// Sends requests as an SDK writes them, over TLS as every SDK does, and reads the answer.
struct SDKSender: Sendable {
    let world: World
    let sdk: SDK

    /// - Parameters:
    ///   - line: Method and target.
    ///   - isNamespace: Signs with the namespace's key instead of the hub's.
    func send(
        _ line: String,
        _ fields: HTTPFields = [:],
        _ body: String? = nil,
        isNamespace: Bool = false
    ) async throws -> SDKAnswer {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let url = try world.hubURL + words[1]
        let connection = try HubConnectionString(
            parsing: isNamespace
                ? try world.server.endpoints.namespaceConnectionString ?? ""
                : try world.connectionString(full: true)
        )
        let authorization = sdk.style.header(
            url,
            keyName: connection.keyName,
            key: connection.key,
            expires: world.clock.now.seconds + 1200
        )
        var all: HTTPFields = ["Authorization": authorization]
        for field in sdk.fields.lines + fields.lines { all.append(field.name, field.value) }
        guard sdk.isHTTP2 else { return try await exchange(words, all, body) }
        let answer = try await world.request(words[0], url, fields: all, body: body.map { Array($0.utf8) })
        return SDKAnswer(status: answer.status.code, fields: answer.fields, body: answer.text)
    }

    /// HTTP/1.1, byte for byte.
    private func exchange(_ words: [String], _ fields: HTTPFields, _ body: String?) async throws -> SDKAnswer
    {
        let origin = try world.hubURL
        var text = "\(words[0]) \(words[1]) HTTP/1.1\r\nHost: \(origin.dropFirst("https://".count))\r\n"
        for field in fields.lines { text += "\(field.name): \(field.value)\r\n" }
        if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
        text += "Connection: close\r\n\r\n" + (body ?? "")
        let tls = try TLSContext.client(
            trusting: try Files.read(try world.authorityFile),
            protocols: ["http/1.1"]
        )
        return try Self.read(try await RawConnection.exchange(Array(text.utf8), with: origin, tls: tls))
    }

    private static func read(_ text: String) throws -> SDKAnswer {
        guard let end = text.firstRange(of: "\r\n\r\n") else { throw WorldFailure("no answer: '\(text)'") }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            let pair = line.split(separator: ":", maxSplits: 1)
            if pair.count == 2 { fields.append(String(pair[0]), pair[1].drop { $0 == " " }.description) }
        }
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return SDKAnswer(status: status, fields: fields, body: String(text[end.upperBound...]))
    }
}

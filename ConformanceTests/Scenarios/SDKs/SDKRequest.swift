import HTTPMessages
import HubClient
import PushCredentials
import TidingsConformance
import TidingsModels

/// How an SDK signs (protocol reference, section 2.4).
enum SignatureStyle {
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

/// Sends requests byte for byte as an SDK writes them, in HTTP/1.1, and reads the answer.
struct SDKSender {
    let world: World
    let style: SignatureStyle
    /// What the SDK sends with each request, in its order.
    var fields: [(String, String)] = []

    struct Answer {
        var status: Int
        var fields: HTTPFields
        var body: String

        /// The id at the end of an address.
        var id: String {
            let location = fields["Location"] ?? ""
            return location.prefix { $0 != "?" }.split(separator: "/").last.map(String.init) ?? ""
        }
    }

    func send(
        _ method: String,
        _ path: String,
        _ more: [(String, String)] = [],
        _ body: String? = nil
    ) async throws -> Answer {
        let origin = try world.hubURL
        let connection = try HubConnectionString(parsing: try world.connectionString(full: true))
        let authorization = style.header(
            origin + path,
            keyName: connection.keyName,
            key: connection.key,
            expires: world.clock.now.seconds + 1200
        )
        let host = origin.dropFirst("https://".count)
        var text = "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\nAuthorization: \(authorization)\r\n"
        for (name, value) in fields + more { text += "\(name): \(value)\r\n" }
        if let body { text += "Content-Length: \(body.utf8.count)\r\n" }
        text += "Connection: close\r\n\r\n" + (body ?? "")
        return try Self.read(try await RawConnection.exchange(Array(text.utf8), with: origin))
    }

    private static func read(_ text: String) throws -> Answer {
        guard let end = text.firstRange(of: "\r\n\r\n") else { throw WorldFailure("no answer: '\(text)'") }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        var fields = HTTPFields()
        for line in lines.dropFirst() {
            let pair = line.split(separator: ":", maxSplits: 1)
            if pair.count == 2 { fields.append(String(pair[0]), pair[1].drop { $0 == " " }.description) }
        }
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Answer(status: status, fields: fields, body: String(text[end.upperBound...]))
    }
}

/// Descriptions in the forms that SDKs write.
enum SDKBody {
    static let connect = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
    static let instance = "http://www.w3.org/2001/XMLSchema-instance"
    static let token = "AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12CD34EF56AB12"
}

extension World {
    /// The name and key of the policy with all rights.
    func fullConnection() throws -> (name: String, key: String) {
        let connection = try HubConnectionString(parsing: try connectionString(full: true))
        return (connection.keyName, connection.key)
    }
}

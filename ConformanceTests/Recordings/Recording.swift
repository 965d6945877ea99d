import HTTPMessages
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// One answer of the original service.
struct RecordedCall: Sendable {
    /// Path and query.
    let target: String
    let status: Int
    let fields: HTTPFields
    let body: String?

    /// Nil for no type.
    var contentType: String? { fields["Content-Type"] }
    /// The path behind the hub's name, without the query: `/registrations/1-2-3`.
    var resource: String {
        let path = target.prefix { $0 != "?" }.dropFirst()
        return String(path.drop { $0 != "/" })
    }
    var query: String { String(target.drop { $0 != "?" }) }
    var hub: String { String(target.dropFirst().prefix { $0 != "/" && $0 != "?" }) }
}

/// The calls of one test of an SDK, in order.
struct Recording: Sendable {
    let name: String
    let calls: [RecordedCall]

    init(name: String, _ bytes: [UInt8]) throws {
        self.name = name
        guard let calls = (try JSONValue(parsing: bytes))["HttpCalls"]?.arrayValue else {
            throw HubError(.internalError, "\(name) is no recording")
        }
        self.calls = try calls.map { call in
            var fields = HTTPFields()
            for part in ["Headers", "ContentHeaders"] {
                for member in call[part]?.objectValue?.members ?? [] {
                    fields.append(member.name, member.value.stringValue ?? "")
                }
            }
            guard let target = call["RequestUriPath"]?.stringValue,
                let status = call["StatusCode"]?.integerValue
            else {
                throw HubError(.internalError, "\(name) holds a call without a path")
            }
            return RecordedCall(
                target: target,
                status: status,
                fields: fields,
                body: call["Content"]?.stringValue
            )
        }
    }

    /// The folder of the recordings: `TIDINGS_RECORDINGS`, or `recordings` in the folder `shared` beside the project. Nil without one.
    static let folder: String? = {
        let root = "\(#filePath)".split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(
            separator: "/"
        )
        let places = [environment("TIDINGS_RECORDINGS"), root + "/../shared/recordings"].compactMap(\.self)
        return places.first { Files.exists($0 + "/LICENSE") || !(Files.list($0) ?? []).isEmpty }
    }()

    static func all() throws -> [Recording] {
        guard let folder else { return [] }
        return try (Files.list(folder) ?? []).map(\.name).filter { $0.hasSuffix(".json") }.map { file in
            try Recording(name: String(file.dropLast(5)), try Files.read(folder + "/" + file) ?? [])
        }
    }
}

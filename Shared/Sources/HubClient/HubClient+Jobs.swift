package import HTTPMessages
import HubAPI
import OutboundHTTP
public import TidingsModels

/// Imports, exports and feedback. All need Manage.
extension HubClient {
    /// Submits a job; ``job(_:)`` tells how far it is.
    public func submit(_ job: HubJob) async throws -> HubJob {
        try JobXML.read(
            try await send("POST", .jobs(hub: hub), body: JobXML.request(job), success: [200, 201]).body
        )
    }

    /// One job.
    public func job(_ id: String) async throws -> HubJob {
        try JobXML.read(try await send("GET", .job(hub: hub, id: id), success: [200]).body)
    }

    /// The jobs that the hub remembers, the newest first.
    public func jobs() async throws -> [HubJob] {
        try JobXML.readFeed(try await send("GET", .jobs(hub: hub), success: [200]).body)
    }

    /// The address of the container with the records of failed targets.
    public func feedbackContainer() async throws -> String {
        ASCII.trimmed(try await send("GET", .feedback(hub: hub), success: [200]).text)
    }

    /// A new container of the hub's server, for the files of jobs: an address that is good for seven days. An extension of ours; needs
    /// a key of the namespace.
    public func makeContainer(_ name: String) async throws -> String {
        let path = "/-/files/" + PercentEncoding.encode(name)
        let answer = try await send("POST", path: path, fields: [:], bytes: nil, success: [201], timeout: nil)
        guard let address = answer.fields["Location"] else {
            throw HubError(.badGateway, "The hub tells no address of the container.")
        }
        return address
    }

    /// The content of a file at a signed address of a container.
    package func download(
        _ container: String,
        _ path: String,
        byteCountMax: Int = 1 << 30
    ) async throws -> [UInt8] {
        var request = OutboundRequest("GET", try Self.file(container, path))
        (request.answerByteCountMax, request.timeout) = (byteCountMax, .seconds(600))
        return try await transfer(request, [200]).body
    }

    /// Puts a file into a container at its signed address.
    package func upload(_ container: String, _ path: String, _ bytes: [UInt8]) async throws {
        let fields: HTTPFields = ["x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain"]
        var request = OutboundRequest("PUT", try Self.file(container, path), fields: fields, body: bytes)
        request.timeout = .seconds(600)
        _ = try await transfer(request, [200, 201])
    }

    /// The address of a file in a container, signed like the container.
    package static func file(_ container: String, _ path: String) throws(HubError) -> HTTPURL {
        let split = container.firstIndex(of: "?") ?? container.endIndex
        let base = container[..<split]
        guard let url = HTTPURL(base + (base.hasSuffix("/") ? "" : "/") + path + container[split...]) else {
            throw HubError(.badRequest, "The container's address is not a URL.")
        }
        return url
    }
}

package import HTTPMessages
package import HTTPServing
import HubAPI
import HubCore
import ProcessLifecycle
package import TidingsModels
import XMLBytes

/// `/-/files`: containers of files for jobs and feedback, used through signed addresses as a storage account's are. It takes Put Blob (block
/// blobs), Get Blob and List Blobs of the Azure Blob REST API, so that its tools work.
package struct FileContainers: Sendable {
    /// A file that is made when it is read.
    package typealias MadeFile = @Sendable (_ container: String, _ path: String) async throws -> [UInt8]?
    package typealias MadeList = @Sendable (_ container: String) async throws -> [String]?

    private let folder: FileFolder
    private let key: [UInt8]
    private let byteCountMax: Int
    private let time: any TimeSource
    private let blocking: @Sendable (@escaping @Sendable () throws -> Void) async throws -> Void

    /// - Parameters:
    ///   - key: Signs the addresses.
    ///   - byteCountMax: The largest file that is taken.
    ///   - blocking: Runs what waits for the disk.
    package init(
        folder: FileFolder,
        key: [UInt8],
        byteCountMax: Int,
        time: any TimeSource,
        blocking: @escaping @Sendable (@escaping @Sendable () throws -> Void) async throws -> Void
    ) {
        self.folder = folder
        self.key = key
        self.byteCountMax = byteCountMax
        self.time = time
        self.blocking = blocking
    }

    /// The path of an address that this server signed for a job; nil for another server's address.
    package func grant(
        _ target: RequestTarget,
        _ permission: FileGrant.Permission
    ) throws(HubError) -> (container: String, path: String)? {
        guard let (container, path) = Self.place(target) else { return nil }
        let grant = try FileGrant(target, container: container, path: path ?? "", key: key, now: time.now)
        try Self.check(grant, permission)
        return (container, path ?? "")
    }

    /// A signed address below the server's own origin.
    package func address(_ origin: String, _ grant: FileGrant) -> String {
        let path =
            grant.path.map {
                "/"
                    + $0.split(separator: "/").map { PercentEncoding.encode(String($0)) }.joined(
                        separator: "/"
                    )
            } ?? ""
        return "\(origin)/-/files/\(grant.container)\(path)?\(grant.query(key))"
    }

    private static func place(_ target: RequestTarget) -> (container: String, path: String?)? {
        let segments = target.segments
        guard segments.count >= 3, segments[0] == "-", segments[1] == "files",
            FileNames.isContainer(segments[2])
        else { return nil }
        if segments.count == 3 { return (segments[2], nil) }
        guard let path = FileNames.path(segments.dropFirst(3)) else { return nil }
        return (segments[2], path)
    }

    private static func check(_ grant: FileGrant, _ permission: FileGrant.Permission) throws(HubError) {
        guard grant.permissions.contains(permission) else {
            throw HubError(
                .unauthorized,
                "MissingClaim: The address does not give '\(permission.rawValue)' (sp)."
            )
        }
    }

    // MARK: Requests

    /// - Parameters:
    ///   - list, made: The hubs' feedback, which stands in no file.
    package func respond(to request: HTTPRequest, list: MadeList, made: MadeFile) async throws -> HTTPResponse
    {
        guard let (container, path) = Self.place(request.target) else {
            throw HubError(.notFound, "There is no such file: '\(request.target.rawPath)'.")
        }
        func authorize(_ permission: FileGrant.Permission) throws(HubError) {
            let grant = try FileGrant(
                request.target,
                container: container,
                path: path ?? "",
                key: key,
                now: time.now
            )
            try Self.check(grant, permission)
        }
        switch (request.method, path) {
        case ("GET", nil) where request.target.parameter("comp") == "list":
            try authorize(.list)
            return try await listing(container, request.target, list)
        case ("GET", let path?), ("HEAD", let path?):
            try authorize(.read)
            if let bytes = try await made(container, path) {
                return HTTPResponse(200, ["Content-Type": "text/plain; charset=utf-8"], body: bytes)
            }
            return try await contents(container, path)
        case ("PUT", let path?):
            try authorize(.write)
            try await store(request.body, container, path)
            return HTTPResponse(201)
        default:
            throw HubError.methodNotAllowed(
                request.method,
                at:
                    "on a \(path == nil ? "container, which has GET with restype=container&comp=list" : "file")",
                allowed: path == nil ? "GET" : "GET, HEAD, PUT"
            )
        }
    }

    private func contents(_ container: String, _ path: String) async throws -> HTTPResponse {
        let place = folder.path(container, path)
        guard !Files.isFolder(place), let reader = try FileReader(place) else {
            throw HubError(.notFound, "There is no file '\(path)' in '\(container)'.")
        }
        var response = HTTPResponse(
            200,
            ["Content-Type": "application/octet-stream", "x-ms-blob-type": "BlockBlob"]
        )
        response.body = .stream(byteCount: reader.byteCount) { try reader.next() }
        return response
    }

    private func store(_ body: RequestBody, _ container: String, _ path: String) async throws {
        guard folder.exists(container) else {
            throw HubError(.notFound, "There is no container '\(container)'.")
        }
        if let count = body.declaredByteCount, count > byteCountMax {
            throw RequestBodyError.tooLarge(byteCountMax: byteCountMax)
        }
        let writer: FileWriter
        do {
            try folder.prepare(container, path)
            writer = try FileWriter(folder.path(container, path))
        } catch {
            throw HubError(
                .conflict,
                "'\(path)' cannot be a file: a part of it is one already, or it is a folder."
            )
        }
        while let bytes = try await body.next() {
            guard writer.byteCount + bytes.count <= byteCountMax else {
                throw RequestBodyError.tooLarge(byteCountMax: byteCountMax)
            }
            try await blocking { try writer.append(bytes) }
        }
        try await blocking { try writer.finish() }
    }

    /// List Blobs, in one page.
    private func listing(
        _ container: String,
        _ target: RequestTarget,
        _ list: MadeList
    ) async throws -> HTTPResponse {
        let prefix = target.parameter("prefix") ?? ""
        var entries: [FileFolder.Entry] = []
        if let names = try await list(container) {
            entries = names.filter { $0.hasPrefix(prefix) }.map { .init(path: $0, byteCount: 0) }
        } else {
            guard folder.exists(container) else {
                throw HubError(.notFound, "There is no container '\(container)'.")
            }
            entries = try folder.list(container, prefix: prefix)
        }
        var text =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults ContainerName=\"\(container)\"><Blobs>"
        for entry in entries {
            text +=
                "<Blob><Name>\(XMLText.escaped(entry.path))</Name><Properties><Content-Length>\(entry.byteCount)</Content-Length>"
            text += "<BlobType>BlockBlob</BlobType></Properties></Blob>"
        }
        return HTTPResponse(
            200,
            ["Content-Type": "application/xml"],
            text: text + "</Blobs><NextMarker/></EnumerationResults>"
        )
    }

    /// Makes a container and tells its address.
    package func make(_ container: String, origin: String, life: Duration) throws -> String {
        guard FileNames.isContainer(container) else {
            throw HubError(
                .badRequest,
                "The container '\(container)' is not 1 to 200 ASCII letters, digits, '.', '_' and '-'."
            )
        }
        try folder.make(container)
        return address(
            origin,
            FileGrant(container, Set(FileGrant.Permission.allCases), until: time.now + life)
        )
    }
}

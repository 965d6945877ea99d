import EventLoops
import HTTPMessages
import HubCore
import HubServer
import OutboundHTTP
import ProcessLifecycle
import TidingsModels

/// Where jobs read and write: the server's own containers, a folder of the operator's (`file:`), and storage accounts over https.
struct JobFileSystem: JobFiles {
    private enum Place {
        case local(String)
        case remote(HTTPURL)
    }

    let containers: FileContainers
    let folder: FileFolder
    /// Whether an address is this server's.
    let isOwn: @Sendable (HTTPURL) -> Bool
    /// Files of `file:` addresses stand below it; nil where there are none.
    let operatorFolder: String?
    /// For files on their way to or from elsewhere.
    let scratch: String
    let client: HTTPClient

    // MARK: Addresses

    func checkInput(_ address: String) throws(HubError) { _ = try place(address, "ImportFileUri", .read) }
    func checkOutput(_ address: String) throws(HubError) {
        _ = try place(address, "OutputContainerUri", .write)
    }

    private func place(
        _ address: String,
        _ name: String,
        _ permission: FileGrant.Permission
    ) throws(HubError) -> Place {
        if address.hasPrefix("file:") { return .local(try operatorPath(address, name)) }
        guard let url = HTTPURL(address) else {
            throw HubError(.badRequest, "\(name) '\(address)' is not an https or file address.")
        }
        if let target = RequestTarget(url.target) {
            // What our key signed is ours, whatever the server's address was then.
            do throws(HubError) {
                if let grant = try containers.grant(target, permission) {
                    return .local(folder.path(grant.container, grant.path))
                }
            } catch  where isOwn(url) {
                throw error
            } catch {
                // Another server's file.
            }
        }
        guard url.scheme == "https" else {
            throw HubError(
                .badRequest,
                "\(name) '\(url.origin)' is not https, and not a container of this server (/-/files)."
            )
        }
        return .remote(url)
    }

    private func operatorPath(_ address: String, _ name: String) throws(HubError) -> String {
        guard let operatorFolder else {
            throw HubError(
                .badRequest,
                "\(name): file addresses are off; hub.jobFolder names the folder that they may reach."
            )
        }
        let path = address.dropFirst("file:".count)
        let plain = path.hasPrefix("//") ? path.drop { $0 == "/" } : path[...]
        let parts = plain.split(separator: "/")
        let root = operatorFolder.split(separator: "/")
        guard !parts.contains(".."), !parts.contains("."), parts.starts(with: root) else {
            throw HubError(.badRequest, "\(name) '\(address)' is not below the folder of hub.jobFolder.")
        }
        return "/" + parts.joined(separator: "/")
    }

    // MARK: Files

    func input(_ address: String, job: String) async throws -> any JobInput {
        switch try place(address, "ImportFileUri", .read) {
        case .local(let path): return try LocalInput(path, removesFile: false)
        case .remote(let url):
            var request = OutboundRequest("GET", url)
            (request.timeout, request.answerByteCountMax) = (Self.remoteTimeout, Self.remoteByteCountMax)
            let answer = try await client.send(request)
            guard answer.status.code == 200 else {
                throw HubError(
                    .badGateway,
                    "ImportFileUri: \(url.origin) answered \(answer.status.code) \(answer.status.reasonPhrase)."
                )
            }
            let path = "\(scratch)/\(job)-input"
            try StateFolder.makeFolder(scratch)
            try Files.replace(path, with: answer.body)
            return try LocalInput(path, removesFile: true)
        }
    }

    func output(_ container: String, path: String, job: String) async throws -> any JobOutput {
        switch try place(container, "OutputContainerUri", .write) {
        case .local(let root):
            let file = root + (root.hasSuffix("/") ? "" : "/") + path
            try StateFolder.makeFolder(
                file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            )
            return LocalOutput(try FileWriter(file))
        case .remote(let url):
            try StateFolder.makeFolder(scratch)
            let name = path.split(separator: "/").last.map(String.init) ?? "file"
            let writer = try FileWriter("\(scratch)/\(job)-\(name)")
            return RemoteOutput(writer, local: "\(scratch)/\(job)-\(name)", to: Self.below(url, path), client)
        }
    }

    /// The address of a file in a container, with the container's query.
    private static func below(_ url: HTTPURL, _ path: String) -> String {
        let query = url.target.drop { $0 != "?" }
        let base = url.target.prefix { $0 != "?" }
        return url.origin + base + (base.hasSuffix("/") ? "" : "/") + path + query
    }

    static let remoteTimeout = Duration.seconds(600)
    static let remoteByteCountMax = 256 << 20
}

/// The lines of a file on this machine. One job reads it.
private actor LocalInput: JobInput {
    private let path: String
    private let removesFile: Bool
    private let reader: FileReader
    private var rest: [UInt8] = []
    private var isSkipping = false
    private var isAtEnd = false

    init(_ path: String, removesFile: Bool) throws {
        guard !Files.isFolder(path), let reader = try FileReader(path) else {
            throw HubError(.notFound, "ImportFileUri: there is no such file.")
        }
        self.path = path
        self.removesFile = removesFile
        self.reader = reader
    }

    func lineCount() async throws -> Int {
        let path = path
        return try await EventLoopGroup.shared.next().runBlocking {
            guard let reader = try FileReader(path) else { return 0 }
            var count = 0
            var last: UInt8 = 0x0A
            while let bytes = try reader.next() {
                count += bytes.reduce(0) { $0 + ($1 == 0x0A ? 1 : 0) }
                last = bytes.last ?? last
            }
            return count + (last == 0x0A ? 0 : 1)
        }
    }

    func lines(countMax: Int) async throws -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var start = 0
        while lines.count < countMax {
            if let end = rest[start...].firstIndex(of: 0x0A) {
                if isSkipping { isSkipping = false } else { lines.append(Self.line(rest[start..<end])) }
                start = end + 1
                continue
            }
            rest.removeFirst(start)
            start = 0
            // The rest of a line that is too long says nothing.
            if rest.count > JobRules.lineByteCountMax, !isSkipping {
                lines.append(rest)
                isSkipping = true
            }
            if isSkipping { rest = [] }
            if isAtEnd {
                if !rest.isEmpty { lines.append(Self.line(rest[...])) }
                rest = []
                break
            }
            let reader = reader
            if let bytes = try await EventLoopGroup.shared.next().runBlocking({ try reader.next() }) {
                rest += bytes
            } else {
                isAtEnd = true
            }
        }
        rest.removeFirst(start)
        return lines
    }

    private static func line(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        Array(bytes.last == 0x0D ? bytes.dropLast() : bytes)
    }

    func close() { if removesFile { Files.remove(path) } }
}

private struct LocalOutput: JobOutput {
    private let writer: FileWriter

    init(_ writer: FileWriter) { self.writer = writer }

    func write(_ bytes: [UInt8]) async throws {
        try await EventLoopGroup.shared.next().runBlocking { try writer.append(bytes) }
    }
    func finish() async throws { try await EventLoopGroup.shared.next().runBlocking { try writer.finish() } }
    /// An unfinished file goes with its writer.
    func discard() {}
}

/// Put Blob once the file is whole.
private struct RemoteOutput: JobOutput {
    private let writer: FileWriter
    private let local: String
    private let address: String
    private let client: HTTPClient

    init(_ writer: FileWriter, local: String, to address: String, _ client: HTTPClient) {
        (self.writer, self.local, self.address, self.client) = (writer, local, address, client)
    }

    func write(_ bytes: [UInt8]) async throws {
        guard writer.byteCount + bytes.count <= JobFileSystem.remoteByteCountMax else {
            throw HubError(
                .tooLarge,
                "OutputContainerUri: more than \(JobFileSystem.remoteByteCountMax) bytes go only to a container of this server."
            )
        }
        try await EventLoopGroup.shared.next().runBlocking { try writer.append(bytes) }
    }

    func finish() async throws {
        try await EventLoopGroup.shared.next().runBlocking { try writer.finish() }
        defer { Files.remove(local) }
        guard let url = HTTPURL(address),
            let bytes = try Files.read(local, byteCountMax: JobFileSystem.remoteByteCountMax)
        else { throw HubError(.badRequest, "OutputContainerUri is not an address.") }
        var request = OutboundRequest(
            "PUT",
            url,
            fields: ["x-ms-blob-type": "BlockBlob", "Content-Type": "text/plain"],
            body: bytes
        )
        request.timeout = JobFileSystem.remoteTimeout
        let answer = try await client.send(request)
        guard [200, 201].contains(answer.status.code) else {
            throw HubError(
                .badGateway,
                "OutputContainerUri: \(url.origin) answered \(answer.status.code) \(answer.status.reasonPhrase)."
            )
        }
    }

    func discard() {}
}

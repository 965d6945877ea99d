package import HTTPMessages
import PushCredentials
package import TidingsModels

/// Signed leave to use a container, or one file of it, until a moment: the query of an address, as a storage account's shared access
/// signature is one.
package struct FileGrant: Equatable, Sendable {
    /// What may be done with the files; the raw values are the letters of `sp`.
    package enum Permission: Character, CaseIterable, Sendable { case read = "r", write = "w", list = "l" }

    package var container: String
    /// Nil for every file of the container.
    package var path: String?
    package var permissions: Set<Permission>
    package var expires: Timestamp

    package init(
        _ container: String,
        path: String? = nil,
        _ permissions: Set<Permission>,
        until expires: Timestamp
    ) {
        self.container = container
        self.path = path
        self.permissions = permissions
        self.expires = expires
    }

    private var letters: String {
        String(Permission.allCases.filter { permissions.contains($0) }.map(\.rawValue))
    }

    private func signature(_ key: [UInt8]) -> [UInt8] {
        let text = [container, path ?? "", letters, String(expires.seconds)].joined(separator: "\n")
        return Digests.hmacSHA256(key: key, Array("tidings-files\n\(text)".utf8))
    }

    /// `sr=c&sp=rwl&se=…&sig=…`.
    package func query(_ key: [UInt8]) -> String {
        "sr=\(path == nil ? "c" : "b")&sp=\(letters)&se=\(expires.seconds)&sig=\(Base64.encodeURL(signature(key)))"
    }

    /// The grant of a request for a file of a container.
    /// - Throws: ``HubError`` `.unauthorized` that says which part does not hold.
    package init(
        _ target: RequestTarget,
        container: String,
        path: String,
        key: [UInt8],
        now: Timestamp
    ) throws(HubError) {
        func parameter(_ name: String) throws(HubError) -> String {
            guard let text = target.parameter(name), !text.isEmpty else {
                throw HubError(
                    .unauthorized,
                    "MissingToken: The address has no '\(name)'; files are reached through a signed address."
                )
            }
            return text
        }
        let letters = try parameter("sp")
        let permissions = Set(letters.compactMap { Permission(rawValue: $0) })
        guard let seconds = Int64(try parameter("se")), seconds >= 0, seconds < Timestamp.never.seconds,
            let signature = Base64.decode(try parameter("sig"))
        else {
            throw HubError(
                .unauthorized,
                "MalformedToken: 'se' is not a time in Unix seconds, or 'sig' no Base64."
            )
        }
        let isFile = try parameter("sr") == "b"
        self.init(container, path: isFile ? path : nil, permissions, until: Timestamp(seconds: seconds))
        guard self.letters == letters, Digests.equal(signature, self.signature(key)) else {
            throw HubError(
                .unauthorized,
                "InvalidSignature: The address was not signed for this container or file."
            )
        }
        guard expires >= now else {
            throw HubError(
                .unauthorized,
                "ExpiredToken: The address expired \(now.seconds - expires.seconds) seconds ago."
            )
        }
    }
}

/// Names of containers and files, which become names on disk.
package enum FileNames {
    private static let partCountMax = 8

    package static func isContainer(_ name: String) -> Bool { isPart(name) }

    /// Nil for a path that no file may have.
    package static func path(_ parts: some Collection<String>) -> String? {
        guard (1...partCountMax).contains(parts.count), parts.allSatisfy(isPart) else { return nil }
        return parts.joined(separator: "/")
    }

    private static func isPart(_ text: String) -> Bool {
        // Files that are being written end so.
        (1...200).contains(text.utf8.count) && text.utf8.first != UInt8(ascii: ".") && !text.hasSuffix(".new")
            && text.utf8.allSatisfy {
                HubTag.isLegal($0) && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "#")
                    && $0 != UInt8(ascii: "@")
            }
    }
}

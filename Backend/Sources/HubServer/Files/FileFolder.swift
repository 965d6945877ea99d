import ProcessLifecycle

/// The containers on disk: a folder each, and folders inside for the parts of a path. Calls block; run them where that is allowed.
package struct FileFolder: Sendable {
    private let root: String

    package init(_ root: String) { self.root = root }

    package func path(_ container: String, _ path: String) -> String { "\(root)/\(container)/\(path)" }

    package func exists(_ container: String) -> Bool { Files.exists("\(root)/\(container)") }

    package func make(_ container: String) throws { try StateFolder.makeFolder("\(root)/\(container)") }

    /// Makes the folders that a file needs.
    package func prepare(_ container: String, _ path: String) throws {
        let folders = [root, container] + path.split(separator: "/").dropLast().map(String.init)
        try StateFolder.makeFolder(folders.joined(separator: "/"))
    }

    package struct Entry: Sendable {
        package var path: String
        package var byteCount: Int
    }

    /// The files below a prefix, by path.
    package func list(_ container: String, prefix: String) throws -> [Entry] {
        var found: [Entry] = []
        func visit(_ folder: String, _ relative: String) throws {
            for entry in Files.list(folder) ?? []
            where !entry.name.hasPrefix(".") && !entry.name.hasSuffix(".new") {
                let path = relative.isEmpty ? entry.name : "\(relative)/\(entry.name)"
                if entry.isFolder {
                    try visit("\(folder)/\(entry.name)", path)
                } else if path.hasPrefix(prefix), let reader = try FileReader("\(folder)/\(entry.name)") {
                    found.append(Entry(path: path, byteCount: reader.byteCount))
                }
            }
        }
        try visit("\(root)/\(container)", "")
        return found.sorted { $0.path < $1.path }
    }
}

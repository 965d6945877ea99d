import ProcessLifecycle
import SQLiteStorage

/// `tidings backup`: a state folder as it was at one moment, database by database.
enum BackupCommand {
    private static let usage = """
        usage: tidings backup DIRECTORY [--state DIR]

        Copies a state folder, also while the server runs. DIRECTORY must not exist; it gets its name when the copy is complete
        and on disk. Everything that was acknowledged before the command began is in it. To restore, give it to
        'tidings serve --state'.
        """

    static func run(_ arguments: [String]) async -> ExitCode {
        await Operator.run(usage, arguments, known: ["state", "help!"]) { options in
            try options.expect(atMost: 1)
            guard let target = options.rest.first, !target.isEmpty else {
                throw ConfigurationError("the directory for the backup is missing")
            }
            let source = options["state"] ?? StateFolder.defaultPath("tidings")
            let fileCount = try Backup.make(of: source, at: target)
            Console.print("\(fileCount) files of \(source) are in \(target)")
            return .success
        }
    }
}

/// Copies state folders.
package enum Backup {
    /// Copies a state folder; the keys first, then the databases, then what they refer to.
    ///
    /// - Returns: How many files were copied.
    package static func make(of source: String, at target: String) throws -> Int {
        guard Files.exists(source + "/keys") else {
            throw ConfigurationError("\(source) is not a state folder: it has no keys")
        }
        guard !Files.exists(target) else { throw ConfigurationError("\(target) exists already") }
        let partial = target + ".partial"
        guard !Files.exists(partial) else {
            throw ConfigurationError("\(partial) is left of a backup that broke off; remove it first")
        }
        do {
            try StateFolder.makeFolder(partial)
            var fileCount = 0
            for folder in ["keys", "ca", "hubs"] { fileCount += try copy(folder, source, partial) }
            for name in ["gateway.sqlite", "backend.sqlite"] where Files.exists(source + "/" + name) {
                try copyDatabase(source + "/" + name, to: partial + "/" + name)
                fileCount += 1
            }
            // After the database that names them: a file that is new meanwhile does no harm.
            fileCount += try copy("files", source, partial)
            try Files.flush(partial)
            try Files.move(partial, to: target)
            return fileCount
        } catch {
            Files.removeTree(partial)
            throw error
        }
    }

    private static func copy(_ folder: String, _ source: String, _ target: String) throws -> Int {
        guard let entries = Files.list(source + "/" + folder) else { return 0 }
        try StateFolder.makeFolder(target + "/" + folder)
        var fileCount = 0
        // Files that are being written have another ending, and the databases' logs are part of their copies.
        for entry in entries where !entry.name.hasSuffix(".new") {
            let path = folder + "/" + entry.name
            if entry.isFolder {
                fileCount += try copy(path, source, target)
                continue
            }
            if entry.name.hasSuffix(".sqlite") {
                try copyDatabase(source + "/" + path, to: target + "/" + path)
            } else if entry.name.hasSuffix("-wal") || entry.name.hasSuffix("-shm") {
                continue
            } else if try !Files.copy(source + "/" + path, to: target + "/" + path) {
                continue
            }
            fileCount += 1
        }
        try Files.flush(target + "/" + folder)
        return fileCount
    }

    private static func copyDatabase(_ source: String, to target: String) throws {
        try Database.copy(source, to: target)
        try Files.flush(target)
    }
}

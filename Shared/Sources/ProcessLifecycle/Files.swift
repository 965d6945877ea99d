import Glibc

/// Whole small files: keys, certificates, device state.
package enum Files {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
        /// The errno of the call that failed.
        package let code: Int32

        init(_ action: String, _ path: String, _ code: Int32) {
            description = "Cannot \(action) \(path): \(String(cString: strerror(code)))"
            self.code = code
        }
    }

    /// The bytes of a file; nil when it does not exist.
    package static func read(_ path: String, byteCountMax: Int = 16 << 20) throws(Failure) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        if file < 0 {
            if errno == ENOENT { return nil }
            throw Failure("open", path, errno)
        }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR { continue }
                throw Failure("read", path, errno)
            }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
            guard bytes.count <= byteCountMax else { throw Failure("read", path, EFBIG) }
        }
    }

    /// Replaces a file so that a crash leaves either the old or the new content: write beside it, flush, rename,
    /// flush the folder.
    package static func replace(_ path: String, with bytes: [UInt8], mode: UInt32 = 0o600) throws(Failure) {
        let temporary = path + ".new"
        let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)
        guard file >= 0 else { throw Failure("write", temporary, errno) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0 {
                if errno == EINTR { continue }
                let code = errno
                close(file)
                throw Failure("write", temporary, code)
            }
            written += count
        }
        let flushed = fdatasync(file)
        let code = errno
        close(file)
        guard flushed == 0 else { throw Failure("flush", temporary, code) }
        guard rename(temporary, path) == 0 else { throw Failure("rename", temporary, errno) }
        try flushFolder(of: path)
    }

    /// Makes a rename in a file's folder durable.
    package static func flushFolder(of path: String) throws(Failure) {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        try flush(path.hasPrefix("/") ? "/" + parent : (parent.isEmpty ? "." : parent))
    }

    /// Returns when a file, or what a folder lists, is on disk.
    package static func flush(_ path: String) throws(Failure) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Failure("open", path, errno) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw Failure("flush", path, errno) }
    }

    package static func remove(_ path: String) { unlink(path) }

    /// The folder of the running program's file; "." when the kernel does not tell.
    package static var programFolder: String {
        guard let path = realpath("/proc/self/exe", nil) else { return "." }
        defer { free(path) }
        return String(String(cString: path).reversed().drop { $0 != "/" }.dropFirst().reversed())
    }

    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// The entries of a folder, sorted; nil when there is no such folder.
    package static func list(_ path: String) -> [(name: String, isFolder: Bool)]? {
        guard let folder = opendir(path) else { return nil }
        defer { closedir(folder) }
        var entries: [(name: String, isFolder: Bool)] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." { continue }
            var status = stat()
            guard lstat(path + "/" + name, &status) == 0 else { continue }
            entries.append((name, status.st_mode & S_IFMT == S_IFDIR))
        }
        return entries.sorted { $0.name < $1.name }
    }

    /// Copies a file of any size and flushes the copy; false when the source does not exist (any more).
    package static func copy(
        _ source: String,
        to target: String,
        mode: UInt32 = 0o600
    ) throws(Failure) -> Bool {
        let input = open(source, O_RDONLY | O_CLOEXEC)
        if input < 0 {
            if errno == ENOENT { return false }
            throw Failure("open", source, errno)
        }
        defer { close(input) }
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard output >= 0 else { throw Failure("write", target, errno) }
        defer { close(output) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = Glibc.read(input, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("read", source, errno) }
            if count == 0 { break }
            var written = 0
            while written < count {
                let step = buffer.withUnsafeBytes {
                    Glibc.write(output, $0.baseAddress.map { $0 + written }, count - written)
                }
                if step < 0, errno == EINTR { continue }
                guard step >= 0 else { throw Failure("write", target, errno) }
                written += step
            }
        }
        guard fdatasync(output) == 0 else { throw Failure("flush", target, errno) }
        return true
    }

    /// Gives a finished file or folder its name, durably.
    package static func move(_ source: String, to target: String) throws(Failure) {
        guard rename(source, target) == 0 else { throw Failure("rename", source, errno) }
        try flushFolder(of: target)
    }

    /// Removes a folder with everything in it. Used for scratch folders.
    /// False also when there is nothing.
    package static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    package static func removeTree(_ path: String) {
        for entry in list(path) ?? [] {
            let child = path + "/" + entry.name
            if entry.isFolder { removeTree(child) } else { unlink(child) }
        }
        if rmdir(path) != 0 { unlink(path) }
    }

    /// A fresh folder below the system's folder for temporary files.
    package static func makeScratchFolder(_ prefix: String) throws(Failure) -> String {
        var template = Array(((environment("TMPDIR") ?? "/tmp") + "/\(prefix).XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure("make a folder like", prefix, errno) }
        return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

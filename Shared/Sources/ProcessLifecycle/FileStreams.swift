import Glibc

/// A file that is written piece by piece beside its name and appears under it only when it is whole and on disk.
/// Used by one task at a time.
package final class FileWriter: @unchecked Sendable {
    private let path: String
    private let temporary: String
    private var file: Int32
    package private(set) var byteCount = 0

    /// The last component of the path.
    package var name: String { path.split(separator: "/").last.map(String.init) ?? path }

    package init(_ path: String) throws(Files.Failure) {
        self.path = path
        temporary = path + ".new"
        file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Files.Failure("write", temporary, errno) }
    }

    deinit {
        guard file >= 0 else { return }
        close(file)
        unlink(temporary)
    }

    package func append(_ bytes: [UInt8]) throws(Files.Failure) {
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(file, $0.baseAddress.map { $0 + written }, bytes.count - written)
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw Files.Failure("write", temporary, errno)
            }
            written += count
        }
        byteCount += bytes.count
    }

    /// Blocks until the bytes are on disk.
    package func finish() throws(Files.Failure) {
        guard fdatasync(file) == 0 else { throw Files.Failure("flush", temporary, errno) }
        close(file)
        file = -1
        guard rename(temporary, path) == 0 else { throw Files.Failure("rename", temporary, errno) }
        try Files.flushFolder(of: path)
    }
}

/// A file that is read piece by piece. Used by one task at a time.
package final class FileReader: @unchecked Sendable {
    private let file: Int32
    private let path: String
    package let byteCount: Int

    /// Nil when there is no such file.
    package init?(_ path: String) throws(Files.Failure) {
        self.path = path
        file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            byteCount = 0
            if errno == ENOENT { return nil }
            throw Files.Failure("open", path, errno)
        }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw Files.Failure("read", path, errno) }
        byteCount = Int(status.st_size)
    }

    deinit { if file >= 0 { close(file) } }

    /// The next bytes; nil at the end.
    package func next(countMax: Int = 64 << 10) throws(Files.Failure) -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: countMax)
        while true {
            let count = read(file, &buffer, countMax)
            if count < 0 {
                if errno == EINTR { continue }
                throw Files.Failure("read", path, errno)
            }
            if count == 0 { return nil }
            buffer.removeLast(countMax - count)
            return buffer
        }
    }
}

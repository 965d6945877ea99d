import Glibc
import Synchronization

/// The folder that holds everything a process keeps: mode 0700, locked by one process at a time.
package final class StateFolder: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let path: String
    /// The descriptor that holds the lock; nil once it was given back.
    private let lock: Mutex<Int32?>

    /// Makes the folder, and its parents, and takes the lock.
    package init(path: String) throws(Failure) {
        self.path = path
        try Self.makeFolder(path)
        let lockPath = path + "/lock"
        let descriptor = open(lockPath, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(description: "Cannot open \(lockPath): \(String(cString: strerror(errno)))")
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            close(descriptor)
            throw Failure(
                description: "The state folder \(path) is in use by another process (its lock file is held)"
            )
        }
        lock = Mutex(descriptor)
    }

    deinit { release() }

    /// Gives the lock back, also while this object is still referred to.
    package func release() {
        let descriptor = lock.withLock { lock in
            defer { lock = nil }
            return lock
        }
        guard let descriptor else { return }
        // A child that is between fork and exec holds the file open as well: closing alone would leave the lock to it.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// A folder below the state folder, made when needed.
    package func folder(_ name: String) throws(Failure) -> String {
        try Self.makeFolder(path + "/" + name)
        return path + "/" + name
    }

    package static func makeFolder(_ path: String) throws(Failure) {
        var partial = path.hasPrefix("/") ? "" : "."
        for component in path.split(separator: "/") {
            partial += "/" + component
            guard mkdir(partial, 0o700) == 0 || errno == EEXIST else {
                throw Failure(
                    description: "Cannot make the folder \(partial): \(String(cString: strerror(errno)))"
                )
            }
        }
    }

    /// `$STATE_DIRECTORY` (set by systemd), else `$XDG_STATE_HOME/<name>`, else `~/.local/state/<name>`.
    package static func defaultPath(_ name: String) -> String {
        if let path = environment("STATE_DIRECTORY") { return path }
        if let path = environment("XDG_STATE_HOME") { return path + "/" + name }
        return (environment("HOME") ?? ".") + "/.local/state/" + name
    }
}

/// The value of an environment variable; nil when unset or empty.
package func environment(_ name: String) -> String? {
    guard let raw = getenv(name) else { return nil }
    let value = String(cString: raw)
    return value.isEmpty ? nil : value
}

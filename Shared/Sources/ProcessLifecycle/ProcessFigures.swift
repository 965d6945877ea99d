package import Glibc

/// What the kernel says about a process (proc(5)).
package struct ProcessFigures: Sendable {
    package var residentByteCount = 0
    package var descriptorCount = 0
    package var cpuSeconds = 0.0

    /// - Parameter process: Nil for the own one.
    package init(of process: pid_t? = nil) throws(Files.Failure) {
        let folder = "/proc/" + (process.map { String($0) } ?? "self")
        // The second field: resident pages.
        let pages = Self.text(try Files.read(folder + "/statm")).split(separator: " ")
        residentByteCount = (pages.count > 1 ? Int(pages[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
        descriptorCount = Files.list(folder + "/fd")?.count ?? 0
        // User and system time, fields 14 and 15, behind the name, which may hold blanks.
        let stat = Self.text(try Files.read(folder + "/stat"))
        let fields = (stat.lastIndex(of: ")").map { stat[$0...] } ?? "").split(separator: " ")
        if fields.count > 13, let user = Double(fields[12]), let system = Double(fields[13]) {
            cpuSeconds = (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }

    private static func text(_ bytes: [UInt8]?) -> String { String(decoding: bytes ?? [], as: UTF8.self) }
}

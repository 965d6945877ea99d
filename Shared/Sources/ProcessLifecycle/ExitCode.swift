/// Exit codes of `sysexits.h`.
package enum ExitCode: Int32, Error, Sendable {
    case success = 0
    /// Something was done, not everything worked.
    case failure = 1
    case usage = 64, dataError = 65, noInput = 66, noUser = 67, unavailable = 69, software = 70
    case cannotCreate = 73, ioError = 74, temporaryFailure = 75, noPermission = 77, configuration = 78
}

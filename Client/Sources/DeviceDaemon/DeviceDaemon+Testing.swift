/// What a scenario does to a daemon that no command does: an app whose stored token is lost or has expired.
extension DeviceDaemon {
    /// Loses the credentials and keeps the registration, as an app does that is opened with a cleared key chain.
    package func forgetLoginForTests() throws {
        state.login = nil
        try save()
    }

    /// Holds credentials that the back end refuses, as after a change of password elsewhere.
    package func replacePasswordForTests(_ password: String) throws {
        state.login?.password = password
        try save()
    }

    /// Waits until the handle is confirmed by the gateway, and what follows from it is done.
    package func currentHandleForTests() async throws -> String { try await currentHandle() }
}

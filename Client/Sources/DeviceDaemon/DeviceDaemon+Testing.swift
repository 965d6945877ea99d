import HTTPMessages
import HubClient

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

    /// What happens to a push whose user is replaced while it is being shown: it waits for the user's next login.
    package func awaitLoginForTests(_ id: Int64) async throws {
        guard var entry = try await inbox.entry(id) else { return }
        entry.awaitsLogin = true
        try await inbox.markShown(entry)
    }

    /// True while a command waits for the handle.
    package func isWaitingForHandleForTests() -> Bool { isWaitingForHandle }

    /// Points the hub at an address where nothing listens, until the next start.
    package func breakHubForTests() {
        hubOverride = HubConnectionString(endpoint: .nowhere, keyName: "x", key: "x")
    }

    /// Waits until the handle is confirmed by the gateway, and what follows from it is done.
    package func currentHandleForTests() async throws -> String { try await currentHandle() }
}

extension HTTPURL {
    /// A port that nothing may listen on without privileges.
    fileprivate static var nowhere: HTTPURL {
        guard let url = HTTPURL("http://127.0.0.1:1") else { preconditionFailure("the literal is a URL") }
        return url
    }
}

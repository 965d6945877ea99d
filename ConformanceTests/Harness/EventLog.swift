package import DeviceDaemon
import TidingsModels

/// Something that a test waited for did not come.
public struct WorldFailure: Error, CustomStringConvertible, Sendable {
    /// What was awaited, and what came instead.
    public let description: String

    package init(_ description: String) { self.description = description }
}

/// The events of one device, in order, for whoever waits for the next one.
package actor EventLog {
    private var events: [DeviceEvent] = []
    private var taken = 0
    private var waiter: CheckedContinuation<Void, Never>?
    private var isEnded = false
    /// Real time: a test that waits longer has failed.
    private static let patience = Duration.seconds(60)

    /// Everything that came so far.
    package var all: [DeviceEvent] { events }

    func add(_ event: DeviceEvent) {
        events.append(event)
        wake()
    }

    func end() {
        isEnded = true
        wake()
    }

    private func wake() {
        waiter?.resume()
        waiter = nil
    }

    /// The next event of one of these names; others before it are passed over.
    package func next(_ names: Set<String>) async throws -> DeviceEvent {
        let timeout = Task {
            try await Task.sleep(for: Self.patience)
            self.expire()
        }
        defer { timeout.cancel() }
        while true {
            while taken < events.count {
                let event = events[taken]
                taken += 1
                if names.contains(event.name) { return event }
            }
            guard !isEnded, !hasExpired else {
                hasExpired = false
                let seen = events.suffix(5).map(\.line).joined(separator: " ")
                throw WorldFailure("none of \(names.sorted()) came in time; the last events were: \(seen)")
            }
            await withCheckedContinuation { waiter = $0 }
        }
    }

    private var hasExpired = false

    private func expire() {
        hasExpired = true
        wake()
    }
}

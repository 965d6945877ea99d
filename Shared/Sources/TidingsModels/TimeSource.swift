/// Where the service's calendar time comes from: TTL, schedule, token expiry, retries and retention.
///
/// I/O deadlines do not use it; they run on an event loop's monotonic clock.
public protocol TimeSource: Sendable {
    /// The current moment.
    var now: Timestamp { get }

    /// Returns at `deadline` or later.
    /// - Throws: `CancellationError` when the task is cancelled first.
    func sleep(until deadline: Timestamp) async throws
}

extension TimeSource {
    package func sleep(for duration: Duration) async throws { try await sleep(until: now + duration) }
}

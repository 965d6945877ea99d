/// How long a device waits before it dials the gateway again.
///
/// Doubles from ``delayMin`` up to ``delayMax``. `jitter` spreads a fleet that lost its gateway at one moment, so that
/// it does not all return at one moment. No standard fixes these numbers.
package struct ReconnectPolicy: Sendable {
    package var delayMin = Duration.milliseconds(500)
    package var delayMax = Duration.seconds(60)

    package init() {}

    /// - Parameters:
    ///   - count: Failed attempts so far, 0 for the first wait.
    ///   - jitter: In `0..<1`, drawn by the caller so that tests can choose it.
    package func delay(afterFailures count: Int, jitter: Double) -> Duration {
        precondition((0.0..<1.0).contains(jitter), "jitter is out of range")
        let doubled = delayMin * (1 << min(count, 16))
        return min(doubled, delayMax) * (0.5 + jitter / 2)
    }
}

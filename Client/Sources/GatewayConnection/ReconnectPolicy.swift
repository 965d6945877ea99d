/// How long a device waits before it dials the gateway again: full jitter, anything from nothing up to a bound that doubles from
/// ``delayMin`` to ``delayMax``.
///
/// A fleet that lost its gateway at one moment comes back evenly over the bound. No standard fixes these numbers; a hello answer
/// resets them.
package struct ReconnectPolicy: Sendable {
    package var delayMin = Duration.seconds(1)
    package var delayMax = Duration.seconds(60)

    package init() {}

    /// - Parameters:
    ///   - count: Failed attempts so far, 0 for the first wait.
    ///   - jitter: In `0..<1`, drawn by the caller so that tests can choose it.
    package func delay(afterFailures count: Int, jitter: Double) -> Duration {
        precondition((0.0..<1.0).contains(jitter), "jitter is out of range")
        let doubled = delayMin * (1 << min(count, 16))
        return min(doubled, delayMax) * jitter
    }
}

import PushCredentials
package import PushTelemetry
import Synchronization
package import TidingsModels

/// What a password check finds.
package enum PasswordCheck: Sendable, Equatable {
    case good, wrong
    /// Not looked at: too many were wrong.
    case throttled(Duration)
    /// Not looked at: too many checks wait already, or the user store fails.
    case unavailable
}

/// Checks passwords against stored scrypt hashes: what was good a short while ago at no cost, guessers slowed down, and a
/// bounded number at a time, since each check costs tens of milliseconds and 16 MiB.
package final class PasswordChecker: Sendable {
    package typealias Blocking = @Sendable (@escaping @Sendable () -> Bool) async throws -> Bool

    /// Checks under way or waiting for the worker pool; more are refused with 503.
    static let checkCountMax = 32
    private let cache = VerifiedCredentialCache()
    private let throttle = LoginThrottle()
    private let checkCount = Mutex(0)
    private let time: any TimeSource
    private let counters: Counters
    private let passwordHash: @Sendable (String) async throws -> String?
    private let blocking: Blocking
    /// Checked for users that do not exist, so that the time tells nobody who does.
    private let decoy = PasswordHash.decoy()

    /// - Parameter blocking: Runs work that takes long, off the loops.
    package init(
        time: any TimeSource,
        counters: Counters,
        passwordHash: @escaping @Sendable (String) async throws -> String?,
        blocking: @escaping Blocking
    ) {
        self.time = time
        self.counters = counters
        self.passwordHash = passwordHash
        self.blocking = blocking
    }

    package func check(_ user: String, _ password: String, from address: String) async -> PasswordCheck {
        if cache.contains(user, password, now: time.now) { return .good }
        if let wait = throttle.wait(user, address, now: time.now) {
            counters.add("backend_logins_total{result=\"throttled\"}")
            return .throttled(wait)
        }
        guard enter() else {
            counters.add("backend_logins_total{result=\"unavailable\"}")
            return .unavailable
        }
        defer { checkCount.withLock { $0 -= 1 } }
        // Counted before it is known, so that many at one moment are no way around it.
        throttle.began(user, address, now: time.now)
        do {
            let stored = try await passwordHash(user)
            let hash = stored ?? decoy
            guard try await blocking({ PasswordHash.verify(password, hash) }) else {
                counters.add("backend_logins_total{result=\"wrong\"}")
                return .wrong
            }
        } catch { return .unavailable }
        counters.add("backend_logins_total{result=\"good\"}")
        throttle.succeeded(user, address)
        cache.insert(user, password, now: time.now)
        return .good
    }

    private func enter() -> Bool {
        checkCount.withLock { count in
            guard count < Self.checkCountMax else { return false }
            count += 1
            return true
        }
    }
}

import HubCore
import Synchronization
package import TidingsModels

/// How many requests a hub takes (protocol reference, section 10). Off unless the operator sets them.
package struct RequestLimits: Sendable, Equatable {
    /// Requests of a hub in a second, sends among them; nil for as many as come.
    package var requestsPerSecond: Int?
    /// Sends of a hub in a second; nil for as many as come.
    package var sendsPerSecond: Int?

    package init(requestsPerSecond: Int? = nil, sendsPerSecond: Int? = nil) {
        self.requestsPerSecond = requestsPerSecond
        self.sendsPerSecond = sendsPerSecond
    }
}

/// Counts requests by hub. Each budget holds two seconds' worth, so that a burst passes and a rate does not.
package final class RequestLimiter: Sendable {
    package enum Kind: String, Sendable { case requests, sends }

    private struct Budget {
        var left: Double
        var at: Timestamp
    }
    private struct Key: Hashable {
        var hub: String
        var kind: Kind
    }

    private let limits: RequestLimits
    /// Hubs are few, and deleted ones are forgotten with the process.
    private let budgets = Mutex<[Key: Budget]>([:])

    package init(_ limits: RequestLimits) { self.limits = limits }

    /// - Throws: ``HubError`` `.throttled`, 429 with `Retry-After`: no SDK takes that for a bad key.
    package func take(_ kind: Kind, hub: String, now: Timestamp) throws(HubError) {
        guard let rate = kind == .sends ? limits.sendsPerSecond : limits.requestsPerSecond else { return }
        let wait: Double? = budgets.withLock { budgets in
            let key = Key(hub: hub.lowercased(), kind: kind)
            let countMax = Double(rate) * 2
            var budget = budgets[key] ?? Budget(left: countMax, at: now)
            let passed = max(0, Double(now.milliseconds - budget.at.milliseconds) / 1000)
            budget.left = min(countMax, budget.left + passed * Double(rate))
            budget.at = now
            defer { budgets[key] = budget }
            guard budget.left >= 1 else { return (1 - budget.left) / Double(rate) }
            budget.left -= 1
            return nil
        }
        guard let wait else { return }
        throw HubError(
            .throttled,
            "The hub '\(hub)' takes \(rate) \(kind.rawValue) a second; come back later.",
            retryAfter: .milliseconds(Int64((wait * 1000).rounded(.up)))
        )
    }
}

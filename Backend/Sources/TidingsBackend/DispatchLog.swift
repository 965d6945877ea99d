import HubCore
import PushTelemetry
import TidingsModels

/// Reports sends to log and counters, without payloads and with handles masked.
struct DispatchLog: DispatchObserver {
    let log: Log
    let counters: Counters

    func sendEnded(hub: String, _ id: NotificationID, state: NotificationState, targets: Int) {
        counters.add("hub_sends_total{state=\"\(state.rawValue)\"}")
        log.info(
            "send_ended",
            [
                "hub": .string(hub), "notification": .string(id.text), "state": .string(state.rawValue),
                "targets": .number(targets),
            ]
        )
    }

    func targetFailed(
        hub: String,
        _ id: NotificationID,
        _ handle: PlatformHandle,
        outcome: Outcome,
        reason: String
    ) {
        log.warning(
            "target_failed",
            [
                "hub": .string(hub), "notification": .string(id.text),
                "platform": .string(handle.platform.appName),
                "handle": .string(handle.masked), "outcome": .string(outcome.rawValue),
                "reason": .string(reason),
            ]
        )
    }

    func attempted(hub: String, _ result: AttemptResult) {
        for (platform, counts) in result.outcomes {
            for (outcome, count) in counts {
                counters.add(
                    "hub_outcomes_total{platform=\"\(platform.appName)\",outcome=\"\(outcome.rawValue)\"}",
                    count
                )
            }
        }
        if !result.retries.isEmpty { counters.add("hub_retries_total", result.retries.count) }
    }

    func deferred(hub: String, _ platform: Platform, count: Int) {
        counters.add("hub_deferrals_total{platform=\"\(platform.appName)\"}", count)
    }

    func circuitChanged(hub: String, _ service: PushService, _ change: Circuit.Change, reason: String) {
        let (platform, origin) = (service.platform.appName, service.origin ?? "")
        switch change {
        case .opened(let until):
            counters.add("hub_circuits_opened_total{platform=\"\(platform)\"}")
            log.warning(
                "circuit_opened",
                [
                    "hub": .string(hub), "platform": .string(platform), "origin": .string(origin),
                    "until": .string(until.description), "reason": .string(reason),
                ]
            )
        case .closed:
            log.info(
                "circuit_closed",
                ["hub": .string(hub), "platform": .string(platform), "origin": .string(origin)]
            )
        }
    }

    func queueFailed(hub: String, reason: String) {
        log.error("queue_failed", ["hub": .string(hub), "reason": .string(reason)])
    }

    func dispatchFailed(hub: String, _ id: NotificationID, reason: String) {
        log.error(
            "dispatch_failed",
            ["hub": .string(hub), "notification": .string(id.text), "reason": .string(reason)]
        )
    }
}

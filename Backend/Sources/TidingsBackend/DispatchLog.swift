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
        counters.add("hub_target_failures_total{outcome=\"\(outcome.rawValue)\"}")
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

    func dispatchFailed(hub: String, _ id: NotificationID, reason: String) {
        log.error(
            "dispatch_failed",
            ["hub": .string(hub), "notification": .string(id.text), "reason": .string(reason)]
        )
    }
}

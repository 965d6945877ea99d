import EventLoops
import HTTPServing
import HubCore
import ProcessLifecycle
import PushGateway
import PushTelemetry
import SQLiteStorage

/// Connects what the parts know to the names of `/-/metrics`: docs/operations.md lists them.
extension Metrics {
    func add(_ server: HTTPServer, service: String) {
        let label = "service=\"\(service)\""
        gauge("http_connections", label) { Double(server.connectionCount) }
        gauge("http_queued_bytes", label) { Double(await server.queuedByteCounts().now) }
        gauge("http_queued_bytes_peak", label) { Double(await server.queuedByteCounts().peak) }
    }

    func add(_ database: Database, name: String) {
        let label = "database=\"\(name)\""
        gauge("database_waiting_writes", label) { Double(database.waitingCounts.writes) }
        gauge("database_waiting_reads", label) { Double(database.waitingCounts.reads) }
        histogram("database_commit_size", label, database.statistics.commitSizes)
        histogram("database_commit_seconds", label, database.statistics.commitSeconds)
    }

    func add(_ dispatcher: Dispatcher, hub: String) {
        let label = "hub=\"\(hub)\""
        // Not a number when the store does not answer.
        gauge("hub_sends_waiting", label) {
            (try? await dispatcher.sendCounts().waiting).map { Double($0) } ?? .nan
        }
        gauge("hub_sends_under_way", label) {
            (try? await dispatcher.sendCounts().underWay).map { Double($0) } ?? .nan
        }
        gauge("hub_sends_resting", label) {
            (try? await dispatcher.sendCounts().resting).map { Double($0) } ?? .nan
        }
    }

    func add(_ gateway: PushGateway) {
        gauge("gateway_devices_connected") { Double(gateway.deviceCount) }
        // Not a number when the mailbox does not answer.
        gauge("gateway_messages_waiting") { (try? await gateway.messageCount()).map { Double($0) } ?? .nan }
    }

    func addProcess(_ lag: LoopLag) {
        histogram("loop_lag_seconds", "", lag.seconds)
        gauge("process_resident_bytes") { Double((try? ProcessFigures())?.residentByteCount ?? 0) }
        gauge("process_open_descriptors") { Double((try? ProcessFigures())?.descriptorCount ?? 0) }
        gauge("process_cpu_seconds") { (try? ProcessFigures())?.cpuSeconds ?? 0 }
    }
}

import EventLoops
import HTTPServing
import HubCore
import ProcessLifecycle
import PushGateway
import PushTelemetry
import SQLiteStorage
import TidingsModels

/// Connects what the parts know to the names of `/-/metrics`: docs/operations.md lists them.
extension Metrics {
    func add(_ server: HTTPServer, service: String) {
        let label = "service=\"\(service)\""
        gauge("http_connections", label) { Double(server.connectionCount) }
        gauges(["http_queued_bytes", "http_queued_bytes_peak"], label) {
            let counts = await server.queuedByteCounts()
            return [Double(counts.now), Double(counts.peak)]
        }
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
        gauges(["hub_sends_waiting", "hub_sends_under_way", "hub_sends_resting"], label) {
            guard let counts = try? await dispatcher.sendCounts() else { return [] }
            return [Double(counts.waiting), Double(counts.underWay), Double(counts.resting)]
        }
        for platform in Platform.allCases where platform != .gcm {
            gauge("hub_circuits_open", "\(label),platform=\"\(platform.appName)\"") {
                Double(dispatcher.circuits.openCount(platform))
            }
        }
    }

    func add(_ gateway: PushGateway) {
        gauge("gateway_devices_connected") { Double(gateway.deviceCount) }
        gauges(["gateway_hellos_waiting", "gateway_hellos_under_way"]) {
            let counts = gateway.hellos.counts
            return [Double(counts.waiting), Double(counts.underWay)]
        }
        gauge("gateway_broadcast_subscriptions") { Double(gateway.broadcasts.subscriptionCount) }
        // Not a number when the mailbox does not answer.
        gauge("gateway_messages_waiting") { (try? await gateway.messageCount()).map { Double($0) } ?? .nan }
    }

    func addProcess(_ lag: LoopLag) {
        histogram("loop_lag_seconds", "", lag.seconds)
        gauges(["process_resident_bytes", "process_open_descriptors", "process_cpu_seconds"]) {
            guard let figures = try? ProcessFigures() else { return [] }
            return [
                Double(figures.residentByteCount), Double(figures.descriptorCount), figures.cpuSeconds,
            ]
        }
    }
}

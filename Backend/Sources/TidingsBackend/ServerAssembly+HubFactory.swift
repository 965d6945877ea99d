import HTTPMessages
import HubCore
import HubStore
import ProcessLifecycle
import PushTelemetry
import TagIndex
import TidingsModels

/// How one hub is opened and closed, also while the server runs.
extension ServerAssembly {
    func hubFactory() throws -> HubHost.Factory {
        let (configuration, time, retry, log, counters) = (
            configuration, time, retry, log.named("hub"), counters
        )
        let (metrics, readiness) = (metrics, readiness)
        let assembly = try senderAssembly()
        let gateway = configuration.isDevelopment ? gatewayCredentials : nil
        let origin = endpoints.gateway
        let folder = configuration.statePath + "/hubs/"
        let files = try jobFiles()
        let configured = configuration.hubs
        let isConfigured = { @Sendable (name: String) in
            configuration.isDevelopment && configured.isEmpty && name == TidingsServer.developmentHub
                || configured.contains { $0.name.lowercased() == name.lowercased() }
        }
        // A hub that is made again gets other files than the one before it, which may still be closing.
        let path = { @Sendable (hub: HubDescription) in
            let file = PercentEncoding.encode(hub.name.lowercased())
            return folder + (isConfigured(hub.name) ? file : "\(file)-\(hub.created.milliseconds)")
                + ".sqlite"
        }
        return HubHost.Factory(
            open: { description in
                let index = RoaringIndex(seed: UInt64.random(in: .min ... .max))
                let store = try await SQLiteHubStore(
                    path: path(description),
                    index: index,
                    registrationCountMax: configuration.registrationCountMax
                )
                let random = InjectedRandom { UInt64.random(in: .min ... .max) }
                let dispatcher = Dispatcher(
                    hub: description.name,
                    store: store,
                    index: index,
                    queue: store,
                    senders: SenderDirectory([:]),
                    time: time,
                    retry: retry,
                    random: random,
                    observer: DispatchLog(log: log, counters: counters)
                )
                let settings = HubSettings(description)
                let channelMode =
                    configuration.channelMode ?? (configuration.isDevelopment ? .original : .strict)
                let expiry = Holder(settings.registrationTTL)
                let jobs = HubJobs(
                    store: store,
                    files: files,
                    runner: JobRunner(
                        hub: description.name.lowercased(),
                        store: store,
                        files: files,
                        time: time,
                        random: random,
                        observer: DispatchLog(log: log, counters: counters),
                        channels: ChannelRules(channelMode, dispatcher.senders),
                        expiry: { expiry.value.map { time.now + $0 } ?? .never }
                    )
                )
                let hub = Hub(
                    name: description.name,
                    settings: settings,
                    listenMode: configuration.listenMode
                        ?? (configuration.isDevelopment ? .original : .strict),
                    channelMode: channelMode,
                    store: store,
                    queue: store,
                    dispatcher: dispatcher,
                    time: time,
                    random: random,
                    jobs: jobs,
                    settingsChanged: { expiry.value = $0.registrationTTL },
                    expressionLimits: configuration.expressionLimits
                )
                return (hub, store)
            },
            senders: { description, current in
                var senders: [Platform: any PlatformSender] = [:]
                if let gateway, let origin {
                    // They do not change: new ones would begin with new access tokens.
                    let own = current.all.filter { description.credentials[$0.key] == nil }
                    senders =
                        own.isEmpty
                        ? try assembly.senders(
                            SenderSettings(gateway: gateway, origin: origin)
                        )
                        : own
                } else if let settings = configured.first(where: {
                    $0.name.lowercased() == description.name.lowercased()
                }) {
                    senders = try assembly.senders(SenderSettings(settings), current: current)
                }
                let described = try assembly.senders(SenderSettings(description), current: current)
                return senders.merging(described) { _, new in new }
            },
            isTrusted: { address in
                guard let url = HTTPURL(address) else { return false }
                return url.origin == origin
                    || url.origin == configuration.gatewayURL.flatMap { HTTPURL($0)?.origin }
                    || configuration.credentialOrigins.contains(url.origin)
            },
            removeFiles: { description in
                for suffix in ["", "-wal", "-shm"] { Files.remove(path(description) + suffix) }
            },
            opened: { hub, store in
                metrics.add(store.database, name: "hub:\(hub.name)")
                readiness.add("hub:\(hub.name)", store.database)
                metrics.add(hub.dispatcher, hub: hub.name)
            },
            closed: { hub in
                metrics.remove("database=\"hub:\(hub.name)\"")
                metrics.remove("hub=\"\(hub.name)\"")
                readiness.remove("hub:\(hub.name)")
            }
        )
    }
}

import EventLoops
import Glibc
import HubCore
import JSONBytes
import ProcessLifecycle
import PushTelemetry

/// `tidings serve`.
enum ServeCommand {
    private static let trimInterval = Duration.seconds(60)

    private static var usage: String {
        var text =
            "usage: tidings serve [--config FILE] [options]\n\nEvery option is also a key of the file and an environment variable:\n\n"
        for key in ConfigurationKeys.all {
            let flag = key.flag + (key.isSwitch ? "" : " …")
            text +=
                "  \(flag)\(String(repeating: " ", count: max(1, 34 - flag.count)))\(key.help) (\(key.path), \(key.variable))\n"
        }
        return text
    }

    static func run(_ arguments: [String]) async -> ExitCode {
        if arguments.contains("--help") {
            Console.print(usage)
            return .success
        }
        // Before anything that a signal would leave half done.
        let signals = Signals.stream()
        var configuration = ServerConfiguration(statePath: StateFolder.defaultPath("tidings"))
        let server: TidingsServer
        do {
            try load(arguments, &configuration)
            server = try await TidingsServer.start(configuration)
        } catch let error as ConfigurationError {
            Console.error("tidings: \(error)")
            return .configuration
        } catch {
            Console.error("tidings: \(error)")
            return .unavailable
        }
        Console.print(readyLine(server))
        printHelp(server, configuration)
        ServiceManager.notify("READY=1")
        // Ends with the process.
        Task {
            while (try? await Task.sleep(for: Self.trimInterval)) != nil {
                try? await EventLoopGroup.shared.next().runBlocking { Memory.trim() }
            }
        }
        for await signal in signals {
            switch signal {
            case .terminate:
                ServiceManager.notify("STOPPING=1")
                await server.stop()
                return .success
            case .reload:
                let log = Log("tidings")
                do {
                    try await server.reload()
                    log.info("reloaded")
                } catch {
                    // What was there goes on.
                    log.error("reload_failed", ["reason": .string(String(describing: error))])
                }
            }
        }
        return .success
    }

    private static func load(_ arguments: [String], _ configuration: inout ServerConfiguration) throws {
        var arguments = arguments
        var file = environment("TIDINGS_CONFIG")
        if let index = arguments.firstIndex(of: "--config") {
            guard index + 1 < arguments.count else { throw ConfigurationError("--config needs a file") }
            file = arguments[index + 1]
            arguments.removeSubrange(index...(index + 1))
        }
        if let file {
            guard let bytes = try Files.read(file) else {
                throw ConfigurationError("The configuration file '\(file)' does not exist")
            }
            try ConfigurationKeys.apply(file: bytes, to: &configuration)
        }
        let rest = try ConfigurationKeys.apply(arguments: arguments, to: &configuration)
        if let unknown = rest.first {
            throw ConfigurationError("'\(unknown)' is not an option of serve; see tidings serve --help")
        }
    }

    /// One JSON line on standard output, for whoever started the process.
    private static func readyLine(_ server: TidingsServer) -> String {
        var object = JSONObject(["event": "ready"])
        let endpoints = server.endpoints
        if let backend = endpoints.backend { object["backend"] = .string(backend) }
        if let hub = endpoints.hub { object["hub"] = .string(hub) }
        if let gateway = endpoints.gateway { object["gateway"] = .string(gateway) }
        if let arm = endpoints.arm { object["arm"] = .string(arm) }
        if let file = endpoints.armTokenFile { object["armToken"] = .string(file) }
        if let file = endpoints.authorityFile { object["ca"] = .string(file) }
        object["pid"] = .number(Int(getpid()))
        return JSONValue.object(object).text
    }

    /// What a developer needs next, on standard error. Keys are shown in development only.
    private static func printHelp(_ server: TidingsServer, _ configuration: ServerConfiguration) {
        guard configuration.isDevelopment else { return }
        let endpoints = server.endpoints
        var lines = ["", "Tidings runs on this machine alone (dev)."]
        if let backend = endpoints.backend { lines.append("  app back end  \(backend)") }
        if let hub = endpoints.hub { lines.append("  hub           \(hub)") }
        if let gateway = endpoints.gateway { lines.append("  gateway       \(gateway)") }
        if let file = endpoints.authorityFile { lines.append("  CA file       \(file)") }
        for (hub, strings) in endpoints.connectionStrings.sorted(by: { $0.key < $1.key }) {
            for (_, string) in strings.sorted(by: { $0.key > $1.key }) {
                lines.append("  hub '\(hub)'  \(string)")
            }
        }
        if let string = endpoints.namespaceConnectionString { lines.append("  every hub     \(string)") }
        Console.error(lines.joined(separator: "\n") + "\n")
    }
}

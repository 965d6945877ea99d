import Glibc
import ProcessLifecycle
import TidingsConformance

/// `tidings-demo`: boots a World and narrates the five tutorials.
enum Demo {
    private static let usage = """
        usage: tidings-demo [--json FILE] [--keep] [--state DIR] [--hostile]

          --json FILE  write each step as a JSON record
          --keep       leave everything running afterwards and print how to go on
          --state DIR  keep the state there
          --hostile    instead of the tutorials: what forbidden input gets, as tables
        """

    static func main() async -> Never {
        do {
            let options = try OptionReader(
                Array(CommandLine.arguments.dropFirst()),
                known: ["json", "keep!", "state", "hostile!", "help!"]
            )
            if options.has("help") {
                Console.print(usage)
                exit(0)
            }
            guard options.rest.isEmpty else { throw OptionError("'\(options.rest[0])' is not an option") }
            exit(try await run(options).rawValue)
        } catch let error as OptionError {
            Console.error("tidings-demo: \(error)\n\n\(usage)")
            exit(ExitCode.usage.rawValue)
        } catch {
            Console.error("tidings-demo: \(error)")
            exit(ExitCode.failure.rawValue)
        }
    }

    private static func run(_ options: OptionReader) async throws -> ExitCode {
        let signals = Signals.stream()
        var worldOptions = World.Options()
        worldOptions.statePath = options["state"]
        let world = try await World.start(worldOptions)
        if options.has("hostile") {
            var inputs = try HostileInputs(world)
            try await inputs.all()
            await world.stop()
            return inputs.failureCount == 0 ? .success : .failure
        }
        let narrator = Narrator(world)
        let code: ExitCode
        do {
            try await Tutorials(world, narrator).all()
            code = narrator.end()
        } catch {
            narrator.failed("the demo broke off: \(error)")
            _ = narrator.end()
            await world.stop()
            return .failure
        }
        if let file = options["json"] { try Files.replace(file, with: narrator.records(), mode: 0o644) }
        if options.has("keep") {
            try explain(world)
            for await signal in signals where signal == .terminate { break }
        }
        await world.stop()
        return code
    }

    private static func explain(_ world: World) throws {
        let ca = try world.authorityFile
        // `make demo` builds them beside this program.
        let programs = Files.programFolder
        Console.print(
            """

            Everything keeps running; Ctrl-C ends it.

              app back end  \(try world.backendURL)
              hub           \(try world.hubURL)   (hub '\(world.hubName)')
              gateway       \(try world.gatewayURL)
              CA file       \(ca)
              full access   \(try world.connectionString(full: true))
              Listen        \(try world.connectionString(full: false))

            Try next:
              curl --cacert \(ca) -u alice:alice -H 'Content-Type: application/json' -d '"Hello from curl"' \\
                '\(try world.backendURL)/api/notifications?pns=apns&to_tag=alice'
              \(programs)/tidings send --connection '\(try world.connectionString(full: true))' --ca \(ca) --news --wait
              \(programs)/tidings-device run --state /tmp/my-device --gateway \(try world.gatewayURL) --backend \(try world.backendURL) \\
                --hub '\(try world.connectionString(full: false))' --ca \(ca)
            """
        )
    }
}

import AppBackend
import Glibc
import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import PushTelemetry
import TidingsModels

/// The program `tidings`: the server, and the operator's commands.
public enum TidingsCommand {
    private static let usage = """
        usage: tidings <command> [options]

          serve         run the services (backend, hub, gateway)
          send          send a notification through a hub
          cancel ID     take a scheduled notification back
          outcomes ID   show what became of a notification
          explain       tell what a send would do, without sending
          registrations list the registrations of a hub
          installations get, put, patch or delete an installation
          import FILE   read registrations from a file
          export FILE   write every registration to a file
          hubs          make, show, change or delete hubs
          broadcasts    set the versions that devices follow at a gateway
          faults        make a development gateway fail on demand
          users         add, remove or list users of the app back end
          backup DIR    copy a state folder, also of a running server
          keys          print the connection strings of the hubs in a state folder

        'tidings <command> --help' tells the options of a command.
        """

    /// Runs the command that the process was started with, and ends the process.
    public static func main() async -> Never {
        let arguments = Array(CommandLine.arguments.dropFirst())
        let code: ExitCode
        switch arguments.first {
        case "serve": code = await ServeCommand.run(Array(arguments.dropFirst()))
        case "send": code = await OperatorCommands.send(Array(arguments.dropFirst()))
        case "cancel": code = await OperatorCommands.cancel(Array(arguments.dropFirst()))
        case "outcomes": code = await OperatorCommands.outcomes(Array(arguments.dropFirst()))
        case "registrations": code = await OperatorCommands.registrations(Array(arguments.dropFirst()))
        case "explain": code = await OperatorCommands.explain(Array(arguments.dropFirst()))
        case "installations": code = await OperatorCommands.installations(Array(arguments.dropFirst()))
        case "import": code = await OperatorCommands.import(Array(arguments.dropFirst()))
        case "export": code = await OperatorCommands.export(Array(arguments.dropFirst()))
        case "hubs": code = await OperatorCommands.hubs(Array(arguments.dropFirst()))
        case "broadcasts": code = await BroadcastsCommand.run(Array(arguments.dropFirst()))
        case "faults": code = await FaultsCommand.run(Array(arguments.dropFirst()))
        case "users": code = await UserCommands.run(Array(arguments.dropFirst()))
        case "backup": code = await BackupCommand.run(Array(arguments.dropFirst()))
        case "keys": code = await KeyCommand.run(Array(arguments.dropFirst()))
        case "help", "--help", "-h":
            Console.print(usage)
            code = .success
        case "version", "--version":
            Console.print("tidings 0.1.0")
            code = .success
        case let other:
            Console.error(other.map { "tidings: '\($0)' is not a command\n\n\(usage)" } ?? usage)
            code = .usage
        }
        exit(code.rawValue)
    }
}

import EventLoops
import Glibc

/// Runs the operator's command for an event.
enum EventCommand {
    /// Waits for the command; its exit status is its own business. The JSON goes to its standard input.
    static func run(_ command: String, _ event: DeviceEvent) async {
        let line = event.line + "\n"
        _ = try? await EventLoopGroup.shared.next().runBlocking {
            // popen(3) starts /bin/sh with a pipe to its standard input.
            guard let pipe = popen(command, "w") else { return }
            _ = line.withCString { fputs($0, pipe) }
            pclose(pipe)
        }
    }
}

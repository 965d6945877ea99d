import HTTPMessages
import JSONBytes
import ProcessLifecycle

/// `tidings broadcasts`: the versions that devices follow at a gateway.
enum BroadcastsCommand {
    private static let usage = """
        usage: tidings broadcasts                  lists the broadcasts: id, version, how many connected devices follow it
               tidings broadcasts set ID VERSION   makes or changes one; connected devices that follow it are told
               tidings broadcasts remove ID

        The gateway takes this from its own machine and from the addresses of its key broadcasts.addresses.

        options
          --gateway URL         the gateway (TIDINGS_GATEWAY, default https://localhost:8082)
          --ca FILE             a certificate authority to trust (TIDINGS_CA)
          --json                machine-readable output
        """

    static func run(_ arguments: [String]) async -> ExitCode {
        await Operator.run(usage, arguments, known: ["gateway", "ca", "json!", "help!"]) { options in
            try options.expect(atMost: options.rest.first == "set" ? 3 : 2)
            let words = options.rest
            switch (words.first, words.count) {
            case (nil, _): try await list(options)
            case ("set", 3):
                _ = try await send("PUT", words[1], .object(["version": .string(words[2])]), options)
            case ("set", _): throw OptionError("broadcasts set needs an id and a version")
            case ("remove", 2): _ = try await send("DELETE", words[1], nil, options)
            case ("remove", _): throw OptionError("broadcasts remove needs an id")
            case (let other?, _): throw OptionError("'\(other)' is not set or remove")
            }
            return .success
        }
    }

    private static func list(_ options: OptionReader) async throws {
        let answer = try await send("GET", nil, nil, options)
        if options.has("json") { return Console.print(answer.text) }
        for entry in answer["broadcasts"]?.arrayValue ?? [] {
            let words = ["id", "version", "subscribers"].map {
                entry[$0]?.stringValue ?? entry[$0]?.text ?? ""
            }
            Console.print(words.joined(separator: "  "))
        }
    }

    private static func send(
        _ method: String,
        _ id: String?,
        _ body: JSONValue?,
        _ options: OptionReader
    ) async throws -> JSONValue {
        if id == "" { throw OptionError("the id of a broadcast is empty") }
        let path = "/-/broadcasts" + (id.map { "/" + PercentEncoding.encode($0) } ?? "")
        return try await GatewayRequest.send(method, path, body, options) {
            $0 == 403
                ? "the gateway takes this from its own machine and from broadcasts.addresses alone"
                : "the gateway answered \($0)"
        }
    }
}

import JSONBytes
import ProcessLifecycle

/// `tidings faults`: what a development gateway does wrong on demand.
enum FaultsCommand {
    private static let usage = """
        usage: tidings faults                        lists the faults, with how many pushes each has met
               tidings faults add FAULT [options]    prints the new fault's number
               tidings faults remove NUMBER
               tidings faults clear

        The gateway must run with --dev. Where several faults concern a push, the first that was added happens.

        FAULT is one of
          --status CODE         answers with CODE (400 to 599) as the platform's service does; --reason and --retry-after add to it
          --delay MILLISECONDS  answers later
          --hang                never answers
          --reset               resets the stream (HTTP/1.1: closes the connection), nothing is taken
          --close               closes the connection, nothing is taken
          --drop-answer         takes the push, and closes the connection without an answer
          --goaway              answers, with a GOAWAY: requests that were not begun go elsewhere
          --stream-limit N      answers, after lowering or raising the number of concurrent streams

        options
          --platform NAME       pushes of apns, fcm, wns, browser, mpns or adm alone
          --handle HANDLE       pushes to this handle alone, as the device shows it
          --every N             each Nth push that fits
          --rate R              a push that fits, with probability R (0.01 is one of a hundred)
          --count N             so many pushes, then no more
          --reason TEXT         the service's word, such as BadDeviceToken
          --retry-after S       seconds
          --gateway URL         the gateway (TIDINGS_GATEWAY, default https://localhost:8082)
          --ca FILE             a certificate authority to trust (TIDINGS_CA)
          --json                machine-readable output
        """

    /// The faults by their option; those that end with "!" take no value.
    private static let kinds = [
        "status": "answer", "delay": "delay", "hang": "hang", "reset": "reset", "close": "close",
        "drop-answer": "dropAnswer", "goaway": "goaway", "stream-limit": "streamLimit",
    ]

    static func run(_ arguments: [String]) async -> ExitCode {
        await Operator.run(
            usage,
            arguments,
            known: [
                "status", "delay", "hang!", "reset!", "close!", "drop-answer!", "goaway!", "stream-limit",
                "platform",
                "handle", "every", "rate", "count", "reason", "retry-after", "gateway", "ca", "json!",
                "help!",
            ]
        ) { options in
            try options.expect(atMost: 2)
            switch options.rest.first {
            case nil: try await list(options)
            case "add":
                try options.expect(atMost: 1)
                let answer = try await send("POST", "", try rule(options), options)
                Console.print(options.has("json") ? answer.text : answer["id"]?.text ?? "")
            case "remove":
                guard options.rest.count == 2, let number = Int(options.rest[1]) else {
                    throw OptionError("faults remove needs the number of a fault")
                }
                _ = try await send("DELETE", "/\(number)", nil, options)
            case "clear": _ = try await send("DELETE", "", nil, options)
            case let other?: throw OptionError("'\(other)' is not add, remove or clear")
            }
            return .success
        }
    }

    private static func list(_ options: OptionReader) async throws {
        let answer = try await send("GET", "", nil, options)
        if options.has("json") { return Console.print(answer.text) }
        for entry in answer["faults"]?.arrayValue ?? [] {
            guard case .object(let object) = entry else { continue }
            let words = object.members.filter { !["id", "fault", "seen", "applied"].contains($0.name) }
                .map { "\($0.name) \($0.value.stringValue ?? $0.value.text)" }
            let counts = "\(object["applied"]?.text ?? "0") of \(object["seen"]?.text ?? "0") pushes"
            Console.print(
                "\(object["id"]?.text ?? "")  \(object["fault"]?.stringValue ?? "")  \(words.joined(separator: ", "))  \(counts)"
            )
        }
    }

    /// The rule as the gateway reads it, which also checks the values.
    private static func rule(_ options: OptionReader) throws -> JSONValue {
        let given = kinds.keys.filter { options.has($0) || options[$0] != nil }.sorted()
        guard given.count == 1, let kind = given.first else {
            throw OptionError(
                "faults add needs one of --\(kinds.keys.sorted().joined(separator: ", --"))"
            )
        }
        var object = JSONObject(["fault": .string(kinds[kind] ?? "")])
        for (option, member) in [
            ("status", "status"), ("delay", "milliseconds"), ("stream-limit", "streams"), ("every", "every"),
            ("count", "count"), ("retry-after", "retryAfter"),
        ] {
            guard let text = options[option] else { continue }
            guard let number = Int(text) else {
                throw OptionError("--\(option) '\(text)' is not a whole number")
            }
            object[member] = .number(number)
        }
        if let text = options["rate"] {
            guard Double(text) != nil else { throw OptionError("--rate '\(text)' is not a number") }
            object["rate"] = .number(text)
        }
        for name in ["platform", "handle", "reason"] { object[name] = options[name].map { .string($0) } }
        return .object(object)
    }

    private static func send(
        _ method: String,
        _ path: String,
        _ body: JSONValue?,
        _ options: OptionReader
    ) async throws -> JSONValue {
        try await GatewayRequest.send(method, "/-/faults" + path, body, options) {
            "the gateway answered \($0): it has no faults unless it runs with --dev"
        }
    }
}

import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// `tidings send`.
extension OperatorCommands {
    private static let sendUsage = """
        usage: tidings send (--tag EXPRESSION... | --everyone) (--template NAME=VALUE... | --native PLATFORM PAYLOAD) [options]

          --tag EXPRESSION      whom to reach; repeated, one notification for each
          --everyone            a broadcast, in place of --tag
          --template NAME=VALUE a value for the templates; repeated for several
          --native PLATFORM     apns, fcmv1, gcm, wns, mpns, adm, baidu, browser or xiaomi: the payload is the argument
          --header NAME:VALUE   a platform header, for example apns-push-type:alert
          --news                the breaking-news console: one template send for each of the six categories
          --at TIME             schedule it, up to seven days ahead: 2030-01-02T10:20:30, UTC unless it ends in an offset
          --wait                wait for the outcomes and print them
          --test                a test send: at most 10 registrations, and a line for each with the push service's answer
        """

    static func send(_ arguments: [String]) async -> ExitCode {
        await attempt(
            sendUsage,
            arguments,
            known: ["tag", "everyone!", "template", "native", "header", "news!", "wait!", "test!", "at"]
        ) { options in
            try check(options)
            let client = try client(options)
            let moment = try options["at"].map { text in
                guard let moment = Timestamp(parsing: text) else {
                    throw ConfigurationError("--at '\(text)' is not a time such as 2030-01-02T10:20:30")
                }
                return moment
            }
            let headers = try headers(options)
            var sends: [(tag: String, HubNotification)] = []
            if options.has("news") {
                for category in NewsCategory.allCases {
                    let values = JSONValue.object([
                        "messageParam": .string("Breaking \(category.rawValue) News!")
                    ])
                    sends.append(
                        (
                            category.rawValue,
                            .template(values.text, headers: headers + [.init("apns-push-type", "alert")])
                        )
                    )
                }
            } else {
                let notification = try notification(options, headers)
                // Without a tag it is a broadcast.
                let tags = options.values["tag"] ?? [""]
                sends = tags.map { ($0, notification) }
            }
            var isAllSent = true
            for (tag, notification) in sends {
                do {
                    if options.has("test") {
                        let outcome = try await client.testSend(notification, tags: tag)
                        report(tag, outcome, options)
                        if outcome.failure > 0 { isAllSent = false }
                    } else {
                        let id =
                            if let moment {
                                try await client.schedule(notification, tags: tag, at: moment)
                            } else {
                                try await client.send(notification, tags: tag)
                            }
                        try await report(client, tag, id, options)
                    }
                } catch let error as HubError {
                    isAllSent = false
                    Console.error(
                        "tidings: \(tag.isEmpty ? "everyone" : tag): \(error.httpStatus) \(error.message)"
                    )
                }
            }
            return isAllSent ? .success : .failure
        }
    }

    static func headers(_ options: OptionReader) throws -> [RegistrationTemplate.Header] {
        try (options.values["header"] ?? []).map { text in
            let parts = text.split(separator: ":", maxSplits: 1)
            guard parts.count == 2 else {
                throw ConfigurationError("--header '\(text)' is not of the form NAME:VALUE")
            }
            return RegistrationTemplate.Header(ASCII.trimmed(parts[0]), ASCII.trimmed(parts[1]))
        }
    }

    /// A forgotten tag or a word in the wrong place must not become a broadcast.
    static func check(_ options: OptionReader) throws {
        if options.has("at") { try options.refuse(["wait", "test"], with: "--at") }
        try options.expect(atMost: options.has("native") ? 1 : 0)
        if options.has("news") {
            return try options.refuse(["tag", "everyone", "template", "native"], with: "--news")
        }
        if options.has("native") { try options.refuse(["template"], with: "--native") }
        if options.has("everyone") { return try options.refuse(["tag"], with: "--everyone") }
        guard let tags = options.values["tag"] else {
            throw ConfigurationError("--tag EXPRESSION or --everyone is missing")
        }
        guard tags.allSatisfy({ $0.contains { $0 != " " } }) else {
            throw ConfigurationError("--tag is empty; --everyone reaches everyone")
        }
    }

    static func notification(
        _ options: OptionReader,
        _ headers: [RegistrationTemplate.Header]
    ) throws -> HubNotification {
        if let name = options["native"] {
            guard let platform = Platform(format: name) ?? Platform(appName: name),
                let payload = options.rest.first
            else {
                throw ConfigurationError(
                    "--native needs a platform (apns, fcmv1, gcm, wns, mpns, adm, baidu, browser, xiaomi), and a payload as the argument"
                )
            }
            return .native(platform, payload, headers: headers)
        }
        guard let pairs = options.values["template"] else {
            throw ConfigurationError("--template NAME=VALUE or --native PLATFORM is missing")
        }
        var object = JSONObject()
        for pair in pairs {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ConfigurationError("--template '\(pair)' is not of the form NAME=VALUE")
            }
            object[String(parts[0])] = .string(String(parts[1]))
        }
        return .template(JSONValue.object(object).text, headers: headers)
    }

    private static func report(
        _ client: HubClient,
        _ tag: String,
        _ id: NotificationID?,
        _ options: OptionReader
    ) async throws {
        var details: NotificationDetails?
        if options.has("wait"), let id { details = try await client.finalDetails(id) }
        if options.has("json") {
            var object = JSONObject(["tag": .string(tag), "notification": .string(id?.text ?? "")])
            if let details { object["details"] = json(details) }
            Console.print(JSONValue.object(object).text)
        } else {
            let outcome = details.map { "  " + summary($0) } ?? ""
            Console.print("sent to \(tag.isEmpty ? "everyone" : tag)  \(id?.text ?? "")\(outcome)")
        }
    }

    private static func report(_ tag: String, _ outcome: NotificationOutcome, _ options: OptionReader) {
        if options.has("json") {
            let results = outcome.results.map { result in
                JSONValue.object([
                    "platform": .string(result.applicationPlatform.format),
                    "handle": .string(result.pnsHandle),
                    "registration": .string(result.registrationID.text), "outcome": .string(result.outcome),
                ])
            }
            let object = JSONObject([
                "tag": .string(tag), "success": .number(outcome.success),
                "failure": .number(outcome.failure), "results": .array(results),
            ])
            return Console.print(JSONValue.object(object).text)
        }
        Console.print(
            "test send to \(tag.isEmpty ? "everyone" : tag)  success \(outcome.success), failure \(outcome.failure)"
        )
        for result in outcome.results {
            Console.print(
                "  \(result.registrationID)  \(result.applicationPlatform.format)  \(result.outcome)"
            )
        }
    }

    static func summary(_ details: NotificationDetails) -> String {
        let counts = details.outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.flatMap {
            platform,
            outcomes in
            outcomes.sorted { $0.key.rawValue < $1.key.rawValue }.map {
                "\(platform.appName) \($0.key.rawValue) \($0.value)"
            }
        }
        return ([details.state.rawValue] + counts).joined(separator: ", ")
    }

    static func json(_ details: NotificationDetails) -> JSONValue {
        var outcomes = JSONObject()
        for (platform, counts) in details.outcomes.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            var object = JSONObject()
            for (outcome, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                object[outcome.rawValue] = .number(count)
            }
            outcomes[platform.appName] = .object(object)
        }
        return .object([
            "state": .string(details.state.rawValue), "tags": .string(details.tags),
            "outcomes": .object(outcomes),
        ])
    }
}

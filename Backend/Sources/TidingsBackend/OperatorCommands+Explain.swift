import HubAPI
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// `tidings explain`.
extension OperatorCommands {
    private static let explainUsage = """
        usage: tidings explain (--tag EXPRESSION | --everyone) (--template NAME=VALUE... | --native PLATFORM PAYLOAD) [options]

        Tells what 'tidings send' with the same options would do, without sending: which registrations match, how many fail which part of
        the expression, and the payload of each group of targets. An extension of Tidings; Azure's hubs do not know it.

        """

    static func explain(_ arguments: [String]) async -> ExitCode {
        await attempt(explainUsage, arguments, known: ["tag", "everyone!", "template", "native", "header"]) {
            options in
            try check(options)
            guard (options.values["tag"] ?? []).count <= 1 else {
                throw ConfigurationError("--tag stands twice; explain one send at a time")
            }
            let notification = try notification(options, try headers(options))
            let explanation = try await client(options).explain(notification, tags: options["tag"] ?? "")
            Console.print(
                options.has("json") ? SendExplanationJSON.value(explanation).text : text(explanation)
            )
            return .success
        }
    }

    private static func text(_ explanation: SendExplanation) -> String {
        var lines = [
            "\(explanation.matchCount) of \(explanation.kindCount) \(explanation.format) registrations match "
                + (explanation.tags.isEmpty ? "(everyone)" : explanation.tags)
        ]
        for part in explanation.parts.dropFirst() {
            let alone = part.failAloneCount.map { " (\($0) fail only it)" } ?? ""
            lines.append("  \(part.text): \(part.matchCount) match, \(part.failCount) fail it\(alone)")
        }
        for (format, count) in explanation.otherKinds.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "  \(count) \(format) registrations match the tags, and get nothing of a \(explanation.format) send"
            )
        }
        if explanation.lookedAtCount < explanation.matchCount {
            lines.append("the first \(explanation.lookedAtCount) of them:")
        }
        if explanation.skippedCount > 0 {
            lines.append("  \(explanation.skippedCount) skipped: repeats of a handle, or expired")
        }
        for unit in explanation.units {
            let kind = unit.template.map { " template '\($0)'" } ?? ""
            lines.append("  \(unit.targetCount) \(unit.platform.format)\(kind): \(unit.payload ?? "nothing")")
            for header in unit.headers { lines.append("    \(header.name): \(header.value)") }
            if let problem = unit.problem { lines.append("    problem: \(problem)") }
        }
        return lines.joined(separator: "\n")
    }
}

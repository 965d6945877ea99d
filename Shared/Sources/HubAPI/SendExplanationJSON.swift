package import JSONBytes
package import TidingsModels

/// The answer to `?explain`.
package enum SendExplanationJSON {
    package static func value(_ explanation: SendExplanation) -> JSONValue {
        var object = JSONObject([
            "format": .string(explanation.format), "tags": .string(explanation.tags),
            "registrationsOfThisKind": .number(explanation.kindCount),
            "matching": .number(explanation.matchCount),
        ])
        object["parts"] = .array(explanation.parts.map(value))
        var others = JSONObject()
        for (format, count) in explanation.otherKinds.sorted(by: { $0.key < $1.key }) {
            others[format] = .number(count)
        }
        object["matchingOfOtherKinds"] = .object(others)
        object["lookedAt"] = .number(explanation.lookedAtCount)
        object["skipped"] = .number(explanation.skippedCount)
        object["units"] = .array(explanation.units.map(value))
        return .object(object)
    }

    private static func value(_ part: SendExplanation.Part) -> JSONValue {
        var object = JSONObject([
            "part": .string(part.text), "matching": .number(part.matchCount),
            "failing": .number(part.failCount),
        ])
        object["failingThisAlone"] = part.failAloneCount.map { .number($0) }
        return .object(object)
    }

    private static func value(_ unit: SendExplanation.Unit) -> JSONValue {
        var object = JSONObject([
            "platform": .string(unit.platform.format), "targets": .number(unit.targetCount),
        ])
        object["template"] = unit.template.map { .string($0) }
        object["registrations"] = .array(unit.registrations.map { .string($0) })
        object["payload"] = unit.payload.map { .string($0) }
        if !unit.headers.isEmpty {
            var headers = JSONObject()
            for header in unit.headers { headers[header.name] = .string(header.value) }
            object["headers"] = .object(headers)
        }
        object["problem"] = unit.problem.map { .string($0) }
        return .object(object)
    }

    package static func read(_ bytes: [UInt8]) throws(HubError) -> SendExplanation {
        guard let value = try? JSONValue(parsing: bytes), let format = value["format"]?.stringValue,
            let kindCount = value["registrationsOfThisKind"]?.integerValue,
            let matchCount = value["matching"]?.integerValue
        else {
            throw HubError(
                .badGateway,
                "The hub's answer explains nothing; ?explain is an extension of Tidings."
            )
        }
        var explanation = SendExplanation(
            format: format,
            tags: value["tags"]?.stringValue ?? "",
            kindCount: kindCount,
            matchCount: matchCount
        )
        explanation.lookedAtCount = value["lookedAt"]?.integerValue ?? 0
        explanation.skippedCount = value["skipped"]?.integerValue ?? 0
        for member in value["matchingOfOtherKinds"]?.objectValue?.members ?? [] {
            explanation.otherKinds[member.name] = member.value.integerValue
        }
        explanation.parts = (value["parts"]?.arrayValue ?? []).map { part in
            SendExplanation.Part(
                text: part["part"]?.stringValue ?? "",
                matchCount: part["matching"]?.integerValue ?? 0,
                failCount: part["failing"]?.integerValue ?? 0,
                failAloneCount: part["failingThisAlone"]?.integerValue
            )
        }
        explanation.units = (value["units"]?.arrayValue ?? []).compactMap { unit in
            guard let platform = unit["platform"]?.stringValue.flatMap({ Platform(format: $0) }) else {
                return nil
            }
            return SendExplanation.Unit(
                platform: platform,
                template: unit["template"]?.stringValue,
                targetCount: unit["targets"]?.integerValue ?? 0,
                registrations: (unit["registrations"]?.arrayValue ?? []).compactMap(\.stringValue),
                payload: unit["payload"]?.stringValue,
                headers: (unit["headers"]?.objectValue?.members ?? []).map {
                    .init($0.name, $0.value.stringValue ?? "")
                },
                problem: unit["problem"]?.stringValue
            )
        }
        return explanation
    }
}

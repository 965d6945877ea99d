import TidingsModels

/// Explains a send without sending it.
extension Dispatcher {
    /// Registrations that are looked at for the units; the counts are of all.
    private static let explainedCountMax = 8 * blockCount
    private static let explainedUnitCountMax = 100
    private static let explainedPartCountMax = 50
    private static let exampleCountMax = 5

    nonisolated func explain(_ send: PendingSend) async throws -> SendExplanation {
        let expression = try send.expression
        let kind = send.indexKind
        let audience: any Audience =
            send.handles.map { HandleAudience(count: $0.count) } ?? index.resolve(kind, expression)
        var explanation = SendExplanation(
            format: send.notification.format.text,
            tags: expression?.text ?? "",
            kindCount: send.handles == nil ? index.resolve(kind, nil).count : audience.count,
            matchCount: audience.count
        )
        if let expression, send.handles == nil {
            explanation.parts = parts(expression, kind, explanation.kindCount)
        }
        if send.handles == nil { explanation.otherKinds = otherKinds(kind, expression) }
        try await addUnits(send, expression, audience, to: &explanation)
        return explanation
    }

    private nonisolated func parts(
        _ expression: TagExpression,
        _ kind: IndexEntry.Kind,
        _ kindCount: Int
    ) -> [SendExplanation.Part] {
        func count(_ expression: TagExpression?) -> Int { index.resolve(kind, expression).count }
        let all = count(expression)
        var parts = [SendExplanation.Part(text: expression.text, matchCount: all, failCount: kindCount - all)]
        let operands: [TagExpression] =
            switch expression {
            case .and(let operands), .or(let operands): operands
            case .tag, .not: []
            }
        for (place, operand) in operands.prefix(Self.explainedPartCountMax).enumerated() {
            let matching = count(operand)
            var part = SendExplanation.Part(
                text: operand.text,
                matchCount: matching,
                failCount: kindCount - matching
            )
            if case .and = expression {
                var others = operands
                others.remove(at: place)
                part.failAloneCount = count(others.count == 1 ? others[0] : .and(others)) - all
            }
            parts.append(part)
        }
        return parts
    }

    /// The commonest reason for an empty send: the devices registered as another kind.
    private nonisolated func otherKinds(
        _ kind: IndexEntry.Kind,
        _ expression: TagExpression?
    ) -> [String: Int] {
        var counts: [String: Int] = [:]
        for other in [IndexEntry.Kind.template] + Platform.allCases.map({ .native($0) }) where other != kind {
            let count = index.resolve(other, expression).count
            guard count > 0 else { continue }
            let format: HubNotification.Format =
                if case .native(let platform) = other { .native(platform) } else { .template }
            counts[format.text] = count
        }
        return counts
    }

    private nonisolated func addUnits(
        _ send: PendingSend,
        _ expression: TagExpression?,
        _ audience: any Audience,
        to explanation: inout SendExplanation
    ) async throws {
        var units: [SendExplanation.Unit] = []
        var after: UInt32?
        while explanation.lookedAtCount < Self.explainedCountMax {
            let numbers = audience.numbers(after: after, countMax: Self.blockCount)
            guard let last = numbers.last else { break }
            after = last
            explanation.lookedAtCount += numbers.count
            let plan = try await plan(send, expression, audience, numbers)
            explanation.skippedCount +=
                plan.missing.count + plan.skipped.values.reduce(0) { $0 + $1.values.reduce(0, +) }
            for unit in plan.units { Self.add(described(unit), to: &units) }
        }
        explanation.units = Array(
            units.sorted { $0.targetCount > $1.targetCount }.prefix(Self.explainedUnitCountMax)
        )
    }

    /// Blocks find the same units again.
    private nonisolated static func add(_ unit: SendExplanation.Unit, to units: inout [SendExplanation.Unit])
    {
        let known = units.firstIndex {
            $0.platform == unit.platform && $0.template == unit.template && $0.payload == unit.payload
                && $0.headers == unit.headers && $0.problem == unit.problem
        }
        guard let known else { return units.append(unit) }
        units[known].targetCount += unit.targetCount
        units[known].registrations += unit.registrations.prefix(
            exampleCountMax - units[known].registrations.count
        )
    }

    private nonisolated func described(_ unit: RenderUnit) -> SendExplanation.Unit {
        let template = unit.targets.first?.registration.content.template?.name
        var described = SendExplanation.Unit(
            platform: unit.platform,
            template: template,
            targetCount: unit.targets.count,
            registrations: unit.targets.prefix(Self.exampleCountMax).map(\.registration.id.text)
        )
        switch unit.payload {
        case .failure(let refusal): described.problem = "\(refusal.outcome.rawValue): \(refusal.reason)"
        case .success(let payload):
            described.payload = String(decoding: payload.body, as: UTF8.self)
            described.headers = payload.headers
            if senders[payload.platform] == nil {
                described.problem =
                    "\(Outcome.invalidCredentials.rawValue): \(Self.noCredentials(payload.platform))"
            }
        }
        return described
    }
}

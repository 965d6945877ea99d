import HTTPMessages
import TidingsConformance
import TidingsModels
import Testing

/// One operation of an SDK: the request as it writes it, and what it reads in the answer.
///
/// Names in braces, such as `{id}`, stand for what the set-up made; `{time}` is an hour from now, to the second.
struct SDKVector: Sendable, CustomTestStringConvertible {
    let name: String
    /// Method and target.
    let line: String
    /// Behind those that the SDK always sends, in its order and spelling.
    var fields: HTTPFields
    /// Nil for none; an empty one is announced with `Content-Length: 0`.
    var body: String?
    var setup: SDKSetup
    var isNamespace: Bool
    var expectations: [SDKExpectation]

    init(
        _ name: String,
        _ line: String,
        _ fields: HTTPFields,
        _ body: String? = nil,
        after setup: SDKSetup = .nothing,
        isNamespace: Bool = false,
        _ expectations: [SDKExpectation]
    ) {
        self.name = name
        self.line = line
        self.fields = fields
        self.body = body
        self.setup = setup
        self.isNamespace = isNamespace
        self.expectations = expectations
    }

    /// Without fields of its own and without a body.
    init(
        _ name: String,
        _ line: String,
        after setup: SDKSetup = .nothing,
        isNamespace: Bool = false,
        _ expectations: [SDKExpectation]
    ) {
        self.init(name, line, [:], after: setup, isNamespace: isNamespace, expectations)
    }

    var testDescription: String { name }

    /// Sends the request to a hub of its own and looks at the answer.
    func run(as sdk: SDK) async throws {
        try await World.run { world in
            let sender = SDKSender(world: world, sdk: sdk)
            var values = try await setup.prepare(sender)
            values["time"] = String((world.clock.now + .seconds(3600)).description.prefix(19))
            var outcome = SDKOutcome(world: world, values: values)
            var filled = HTTPFields()
            for field in fields.lines { filled.append(field.name, outcome.filled(field.value)) }
            outcome.answer = try await sender.send(
                outcome.filled(line),
                filled,
                body.map(outcome.filled),
                isNamespace: isNamespace
            )
            for expectation in expectations + sdk.expectations {
                let holds = try await expectation.holds(outcome)
                #expect(holds, "\(expectation.name), but: \(outcome.answer)")
            }
        }
    }
}

/// An answer, with what the expectations need to judge it.
struct SDKOutcome: Sendable {
    let world: World
    /// What the set-up made, by the names that stand in braces.
    let values: [String: String]
    var answer = SDKAnswer(status: 0, fields: [:], body: "")

    func filled(_ text: String) -> String {
        values.reduce(text) { $0.replacing("{\($1.key)}", with: $1.value) }
    }
}

extension HTTPFields {
    /// Both, in this order.
    static func + (left: HTTPFields, right: HTTPFields) -> HTTPFields {
        var fields = left
        for field in right.lines { fields.append(field.name, field.value) }
        return fields
    }
}

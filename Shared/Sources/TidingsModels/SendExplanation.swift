/// What a send would do, without sending: an extension of ours.
public struct SendExplanation: Equatable, Sendable {
    /// A part of the tag expression: the whole, or an operand of its outermost operator.
    public struct Part: Equatable, Sendable {
        /// The part as text.
        public var text: String
        /// Registrations of the send's kind that match it.
        public var matchCount: Int
        /// Registrations of the send's kind that do not.
        public var failCount: Int
        /// Those among them that match every other part; only where the parts are joined by `&&`.
        public var failAloneCount: Int?

        /// A part.
        public init(text: String, matchCount: Int, failCount: Int, failAloneCount: Int? = nil) {
            self.text = text
            self.matchCount = matchCount
            self.failCount = failCount
            self.failAloneCount = failAloneCount
        }
    }

    /// Targets that get the same payload.
    public struct Unit: Equatable, Sendable {
        /// The push service.
        public var platform: Platform
        /// The name of a template; nil for native registrations, and for a template without a name.
        public var template: String?
        /// How many targets, among those that were looked at.
        public var targetCount: Int
        /// A few of them.
        public var registrations: [String]
        /// The payload as the platform would get it, UTF-8; for FCM v1 without the target's token.
        public var payload: String?
        /// The headers that go with it.
        public var headers: [RegistrationTemplate.Header]
        /// Why there is no payload, or nobody to take it: the outcome and its reason.
        public var problem: String?

        /// A unit.
        public init(
            platform: Platform,
            template: String? = nil,
            targetCount: Int,
            registrations: [String] = [],
            payload: String? = nil,
            headers: [RegistrationTemplate.Header] = [],
            problem: String? = nil
        ) {
            self.platform = platform
            self.template = template
            self.targetCount = targetCount
            self.registrations = registrations
            self.payload = payload
            self.headers = headers
            self.problem = problem
        }
    }

    /// `apple`, `template` and so on.
    public var format: String
    /// The expression as it was read; empty for a broadcast.
    public var tags: String
    /// Registrations that the format addresses, whatever their tags.
    public var kindCount: Int
    /// Registrations that match.
    public var matchCount: Int
    /// The parts of the expression; empty for a broadcast.
    public var parts: [Part]
    /// Registrations of other kinds that match the tags, by format: they get nothing of this send.
    public var otherKinds: [String: Int]
    /// How many of the matching registrations the units tell of.
    public var lookedAtCount: Int
    /// Those among them that get nothing: repeats of a handle, or expired.
    public var skippedCount: Int
    /// What is sent, the largest first.
    public var units: [Unit]

    /// An explanation.
    public init(
        format: String,
        tags: String,
        kindCount: Int,
        matchCount: Int,
        parts: [Part] = [],
        otherKinds: [String: Int] = [:],
        lookedAtCount: Int = 0,
        skippedCount: Int = 0,
        units: [Unit] = []
    ) {
        self.format = format
        self.tags = tags
        self.kindCount = kindCount
        self.matchCount = matchCount
        self.parts = parts
        self.otherKinds = otherKinds
        self.lookedAtCount = lookedAtCount
        self.skippedCount = skippedCount
        self.units = units
    }
}

extension TagExpression {
    /// The expression as text, with parentheses where the operators need them.
    package var text: String { text(inside: 0) }

    private func text(inside level: Int) -> String {
        switch self {
        case .tag(let tag): tag.text
        case .not(let operand): "!" + operand.text(inside: 3)
        case .and(let operands): Self.joined(operands, " && ", 2, inside: level)
        case .or(let operands): Self.joined(operands, " || ", 1, inside: level)
        }
    }

    private static func joined(
        _ operands: [TagExpression],
        _ symbol: String,
        _ own: Int,
        inside level: Int
    ) -> String {
        let text = operands.map { $0.text(inside: own) }.joined(separator: symbol)
        return own < level ? "(\(text))" : text
    }
}

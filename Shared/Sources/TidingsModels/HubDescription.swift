/// A hub as its operator describes it (protocol reference, section 9.2).
public struct HubDescription: Equatable, Sendable {
    /// One path segment.
    public var name: String
    /// How long a registration lives after its last write, at least a day; nil for ever.
    public var registrationTTL: Duration?
    /// None at the creation stands for the two defaults.
    public var policies: [AccessPolicy]
    /// The properties of each platform's credential, by the names of the wire (`KeyId`, `PackageSid`).
    public var credentials: [Platform: [String: String]]
    /// Up to 1,024 characters of the operator's.
    public var userMetadata: String?
    /// A disabled hub refuses registrations and sends.
    public var isDisabled: Bool
    /// When the hub was made.
    public var created: Timestamp
    /// When its description was changed last.
    public var updated: Timestamp

    /// A description.
    public init(
        name: String,
        registrationTTL: Duration? = nil,
        policies: [AccessPolicy] = [],
        credentials: [Platform: [String: String]] = [:],
        userMetadata: String? = nil,
        isDisabled: Bool = false,
        created: Timestamp = Timestamp(milliseconds: 0),
        updated: Timestamp = Timestamp(milliseconds: 0)
    ) {
        self.name = name
        self.registrationTTL = registrationTTL
        self.policies = policies
        self.credentials = credentials
        self.userMetadata = userMetadata
        self.isDisabled = isDisabled
        self.created = created
        self.updated = updated
    }
}

/// ISO 8601 durations of days, hours, minutes and seconds, as `xsd:duration` has them. Years and months have no fixed length
/// and are refused.
package enum DurationText {
    /// `TimeSpan.MaxValue`, which stands for ever.
    package static let forever = "P10675199DT2H48M5.4775807S"

    /// Nil for another text. Ever, or longer, is `.some(nil)`.
    package static func parse(_ text: String) -> Duration?? {
        var rest = text[...].utf8
        guard rest.popFirst() == UInt8(ascii: "P"), !rest.isEmpty else { return nil }
        var seconds: Int64 = 0
        var milliseconds: Int64 = 0
        var isTime = false
        var order = 0
        while let first = rest.first {
            if first == UInt8(ascii: "T") {
                guard !isTime else { return nil }
                isTime = true
                rest.removeFirst()
                guard !rest.isEmpty else { return nil }
                continue
            }
            let digits = rest.prefix { (0x30...0x39).contains($0) }
            guard (1...12).contains(digits.count),
                let number = Int64(String(decoding: Array(digits), as: UTF8.self))
            else { return nil }
            rest = rest.dropFirst(digits.count)
            if rest.first == UInt8(ascii: ".") {
                let fraction = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
                rest = rest.dropFirst(1 + fraction.count)
                guard !fraction.isEmpty, isTime, rest.first == UInt8(ascii: "S") else { return nil }
                let three =
                    Array(fraction.prefix(3))
                    + Array(repeating: UInt8(ascii: "0"), count: max(0, 3 - fraction.count))
                milliseconds = Int64(String(decoding: three, as: UTF8.self)) ?? 0
            }
            let unit: (place: Int, seconds: Int64)
            switch (rest.popFirst(), isTime) {
            case (UInt8(ascii: "D"), false): unit = (1, 86400)
            case (UInt8(ascii: "H"), true): unit = (2, 3600)
            case (UInt8(ascii: "M"), true): unit = (3, 60)
            case (UInt8(ascii: "S"), true): unit = (4, 1)
            default: return nil
            }
            guard unit.place > order else { return nil }
            order = unit.place
            seconds += number * unit.seconds
        }
        guard order > 0 else { return nil }
        // Longer than timestamps reach.
        if seconds >= 10_675_199 * 86400 { return .some(nil) }
        return .some(.milliseconds(seconds * 1000 + milliseconds))
    }

    package static func text(_ duration: Duration?) -> String {
        guard let duration else { return forever }
        let milliseconds =
            duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
        let seconds = milliseconds / 1000
        var time = ""
        if seconds / 3600 % 24 > 0 { time += "\(seconds / 3600 % 24)H" }
        if seconds / 60 % 60 > 0 { time += "\(seconds / 60 % 60)M" }
        if milliseconds % 60_000 > 0 {
            let fraction = String(1000 + milliseconds % 1000).dropFirst()
            time += "\(seconds % 60)" + (milliseconds % 1000 > 0 ? ".\(fraction)" : "") + "S"
        }
        let days = seconds / 86400 > 0 ? "\(seconds / 86400)D" : ""
        return "P" + days + (time.isEmpty ? (days.isEmpty ? "T0S" : "") : "T" + time)
    }
}

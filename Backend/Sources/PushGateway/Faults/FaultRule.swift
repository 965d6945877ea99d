import HTTPMessages
import HTTPServing
import JSONBytes
import TidingsModels

/// What the gateway does instead of taking a push, and which pushes it concerns.
struct FaultRule: Sendable, Equatable {
    enum Fault: Sendable, Equatable {
        /// Answers as the platform's service does with this status.
        case answer(FaultAnswer)
        /// Goes on after so long.
        case delay(Duration)
        /// Not taken, and the connection misbehaves.
        case transport(TransportFault)
        /// Taken, and the connection is closed without an answer.
        case dropAnswer
        /// Taken, and the connection misbehaves beside the answer.
        case beside(TransportFault)
    }

    /// Which of the pushes that fit are concerned.
    enum Share: Sendable, Equatable {
        case every(Int)
        /// Above 0, up to 1.
        case rate(Double)
    }

    var fault: Fault
    /// Nil for every platform.
    var platform: Platform?
    /// As the device shows it; nil for every handle.
    var handle: String?
    var share = Share.every(1)
    /// After so many the rule has no effect; nil for no end.
    var countMax: Int?

    static let delayMax = Duration.seconds(600)
    private static let members: Set = [
        "fault", "platform", "handle", "every", "rate", "count", "status", "reason", "retryAfter",
        "milliseconds",
        "streams",
    ]

    /// Reads a rule; the refusal names the member and what is allowed.
    init(_ json: JSONValue) throws(HubError) {
        func refusal(_ text: String) -> HubError { HubError(.badRequest, text) }
        guard case .object(let object) = json else { throw refusal("A fault must be a JSON object.") }
        if let unknown = object.members.first(where: { !Self.members.contains($0.name) }) {
            throw refusal(
                "The member '\(unknown.name)' is not known. Known are \(Self.members.sorted().joined(separator: ", "))."
            )
        }
        func integer(_ name: String, _ range: ClosedRange<Int>) throws(HubError) -> Int? {
            guard let value = object[name] else { return nil }
            guard let number = value.integerValue, range.contains(number) else {
                throw refusal(
                    "'\(name)' must be a whole number from \(range.lowerBound) to \(range.upperBound)."
                )
            }
            return number
        }
        if let name = object["platform"] {
            guard let known = name.stringValue.flatMap(Platform.init(appName:)) else {
                throw refusal("'platform' must be apns, fcm, wns, mpns, adm or browser.")
            }
            platform = known
        }
        handle = object["handle"]?.stringValue
        countMax = try integer("count", 1...Int(Int32.max))
        if let every = try integer("every", 1...Int(Int32.max)) { share = .every(every) }
        if let rate = object["rate"] {
            guard case .number(let text) = rate, let value = Double(text), value > 0, value <= 1,
                object["every"] == nil
            else { throw refusal("'rate' must be a number above 0 and up to 1, without 'every' beside it.") }
            share = .rate(value)
        }
        switch object["fault"]?.stringValue {
        case "answer":
            guard let status = try integer("status", 400...599) else { throw refusal("'status' is missing.") }
            fault = .answer(
                FaultAnswer(
                    status: HTTPStatus(status),
                    reason: object["reason"]?.stringValue,
                    retryAfter: try integer("retryAfter", 0...86400)
                )
            )
        case "delay":
            let max = Int(Self.delayMax / .milliseconds(1))
            guard let milliseconds = try integer("milliseconds", 1...max) else {
                throw refusal("'milliseconds' is missing.")
            }
            fault = .delay(.milliseconds(milliseconds))
        case "hang": fault = .transport(.hang)
        case "reset": fault = .transport(.reset)
        case "close": fault = .transport(.close)
        case "dropAnswer": fault = .dropAnswer
        case "goaway": fault = .beside(.goAway)
        case "streamLimit":
            guard let count = try integer("streams", 1...1000) else { throw refusal("'streams' is missing.") }
            fault = .beside(.streamLimit(count))
        default:
            throw refusal(
                "'fault' must be answer, delay, hang, reset, close, dropAnswer, goaway or streamLimit."
            )
        }
    }

    /// The members that ``init(_:)`` reads.
    var json: JSONObject {
        var object = JSONObject()
        func set(_ name: String, _ values: KeyValuePairs<String, JSONValue?> = [:]) {
            object["fault"] = .string(name)
            for (name, value) in values { object[name] = value }
        }
        switch fault {
        case .answer(let answer):
            set(
                "answer",
                [
                    "status": .number(answer.status.code), "reason": answer.reason.map { .string($0) },
                    "retryAfter": answer.retryAfter.map { .number($0) },
                ]
            )
        case .delay(let time): set("delay", ["milliseconds": .number(Int(time / .milliseconds(1)))])
        case .transport(.hang): set("hang")
        case .transport(.reset): set("reset")
        case .transport: set("close")
        case .dropAnswer: set("dropAnswer")
        case .beside(.streamLimit(let count)): set("streamLimit", ["streams": .number(count)])
        case .beside: set("goaway")
        }
        object["platform"] = platform.map { .string($0.appName) }
        object["handle"] = handle.map { .string($0) }
        switch share {
        case .every(1): break
        case .every(let count): object["every"] = .number(count)
        case .rate(let rate): object["rate"] = .number("\(rate)")
        }
        object["count"] = countMax.map { .number($0) }
        return object
    }
}

/// A status that a door answers with, in its service's words.
package struct FaultAnswer: Sendable, Equatable {
    let status: HTTPStatus
    /// The service's own word for it; nil takes the usual one for the status.
    let reason: String?
    /// Seconds.
    let retryAfter: Int?
}

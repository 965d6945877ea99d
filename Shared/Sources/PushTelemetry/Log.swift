import Glibc
import JSONBytes
import Synchronization
package import TidingsModels

/// Structured log: one JSON object per line, with a UTC RFC 3339 time and the task's ``TraceID``. No secret, payload or full handle may be
/// passed to it.
package struct Log: Sendable {
    package enum Level: String, Sendable, CaseIterable { case debug, info, warning, error }

    private let sink: LogSink
    private let service: String

    package init(_ service: String, to sink: LogSink = .standardError) {
        self.service = service
        self.sink = sink
    }

    /// The same sink under another service name.
    package func named(_ service: String) -> Log { Log(service, to: sink) }

    package func info(_ event: String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        write(.info, event, fields)
    }
    package func warning(_ event: String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        write(.warning, event, fields)
    }
    package func error(_ event: String, _ fields: KeyValuePairs<String, LogValue> = [:]) {
        write(.error, event, fields)
    }
    /// For lines of each push: below the level of the sink, nothing is made.
    package func debug(
        _ event: String,
        _ fields: @autoclosure () -> KeyValuePairs<String, LogValue> = [:],
        trace: @autoclosure () -> TraceID? = TraceID.current
    ) {
        guard sink.takes(.debug) else { return }
        write(.debug, event, fields(), trace())
    }

    private func write(
        _ level: Level,
        _ event: String,
        _ fields: KeyValuePairs<String, LogValue>,
        _ trace: TraceID? = TraceID.current
    ) {
        guard sink.takes(level) else { return }
        var object = JSONObject([
            "time": .string(Self.now.description), "level": .string(level.rawValue),
            "service": .string(service),
            "event": .string(event),
        ])
        if let trace { object["trace"] = .string(trace.text) }
        for (name, value) in fields { object[name] = value.json }
        var line = JSONValue.object(object).serialized()
        line.append(0x0A)
        sink.write(line)
    }

    private static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

/// A value in a log line.
package enum LogValue: Sendable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByBooleanLiteral
{
    case string(String)
    case number(Int)
    case bool(Bool)

    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int) { self = .number(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }

    fileprivate var json: JSONValue {
        switch self {
        case .string(let text): .string(text)
        case .number(let value): .number(value)
        case .bool(let value): .bool(value)
        }
    }
}

/// Where log lines go: a descriptor, or memory for tests.
package final class LogSink: Sendable {
    /// Standard error, from `info` on.
    package static let standardError = LogSink(descriptor: 2, level: .info)

    private let descriptor: Int32?
    private let minimum: Int
    /// The lines of a sink without a descriptor, at most ``byteCountMax``.
    private let memory = Mutex<[UInt8]>([])
    private static let byteCountMax = 64 << 20

    private init(descriptor: Int32?, level: Log.Level) {
        self.descriptor = descriptor
        minimum = Log.Level.allCases.firstIndex(of: level) ?? 0
    }

    /// A sink that keeps every line, so that a test can search them.
    package static func inMemory() -> LogSink { LogSink(descriptor: nil, level: .debug) }

    package static func standardError(from level: Log.Level) -> LogSink {
        LogSink(descriptor: 2, level: level)
    }

    /// What an in-memory sink received.
    package var contents: [UInt8] { memory.withLock { $0 } }

    func takes(_ level: Log.Level) -> Bool { (Log.Level.allCases.firstIndex(of: level) ?? 0) >= minimum }

    func write(_ line: [UInt8]) {
        guard let descriptor else {
            return memory.withLock { if $0.count + line.count <= Self.byteCountMax { $0 += line } }
        }
        // One write per line keeps lines of different threads apart; a full pipe drops the rest of a line.
        _ = line.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }
}

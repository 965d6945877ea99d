import DeviceDaemon
import DeviceLink
import HTTPMessages
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TidingsConformance
import TidingsModels

/// Prints what happens and checks it. Each value in a line was read from the device's own inbox, the hub's outcome or an
/// answer on the wire; never from what the demo itself sent.
final class Narrator {
    private let world: World
    private var scenario = ""
    private var step = 0
    private var steps: [JSONValue] = []
    private var checkCount = 0
    private var failureCount = 0

    init(_ world: World) { self.world = world }

    func title(_ number: String, _ text: String) {
        scenario = number
        step = 0
        Console.print("\n\(number)  \(text)")
    }

    func say(_ text: String) { Console.print("    \(text)") }

    /// Waits for the device's next push and compares what its inbox holds with what should be there.
    func shows(
        _ device: WorldDevice,
        text expected: String,
        sent ids: [String: NotificationID] = [:]
    ) async throws {
        let event = try await device.nextPush()
        try await report(device, event, ids) { entry in
            entry.text == expected ? nil : "expected \"\(expected)\""
        }
    }

    /// The same for a picture or sound, whose bytes are compared by their hash.
    func showsFile(
        _ device: WorldDevice,
        text expected: String,
        bytes: [UInt8],
        sent ids: [String: NotificationID]
    ) async throws {
        let event = try await device.nextPush()
        try await report(device, event, ids) { entry in
            guard entry.text == expected else { return "expected the message \"\(expected)\"" }
            guard let file = entry.file, let stored = try? Files.read(file) else {
                return "no file was stored"
            }
            return stored == bytes ? nil : "the stored file differs from what was sent"
        }
    }

    private func report(
        _ device: WorldDevice,
        _ event: DeviceEvent,
        _ ids: [String: NotificationID],
        _ fault: (InboxEntry) -> String?
    ) async throws {
        step += 1
        checkCount += 1
        let inboxID = Int64(event.fields["id"]?.integerValue ?? 0)
        guard let entry = try await device.daemon.inboxEntries().first(where: { $0.id == inboxID }) else {
            return failed("\(device.name): the inbox has no entry \(inboxID)")
        }
        let id = ids[device.platform.appName] ?? (ids.count == 1 ? ids.values.first : nil)
        let details = if let id { try await world.outcome(id) } else { NotificationDetails?.none }
        var shown = "\"\(entry.text ?? "")\""
        if let file = entry.file, let bytes = try Files.read(file) {
            shown += " + \(entry.contentType ?? "") \(bytes.count) bytes, sha256 \(Self.shortHash(bytes))"
        }
        if let content = entry.content { shown += " + \"\(content)\"" }
        let push =
            "push of \(entry.notification.data.count) bytes, sha256 \(Self.shortHash(entry.notification.data))"
        let outcome = details.map { "; hub: \($0.state.rawValue)\(Self.outcomes($0, device.platform))" } ?? ""
        let problem = fault(entry)
        let mark = problem == nil ? "ok" : "FAILED"
        Console.print(
            "    [\(mark)] \(device.name) (\(device.platform.appName)) inbox #\(entry.id) shows \(shown)  [\(push)\(outcome)]"
        )
        if let problem { failed("\(device.name): \(problem)", isCounted: false) }
        record(device, entry, event, id, details, isGood: problem == nil)
    }

    private static func shortHash(_ bytes: [UInt8]) -> String {
        String(Hex.encode(Digests.sha256(bytes)).prefix(12)) + "…"
    }

    private static func outcomes(_ details: NotificationDetails, _ platform: Platform) -> String {
        let counts = (details.outcomes[platform] ?? [:]).sorted { $0.key.rawValue < $1.key.rawValue }
        return counts.map { ", \(platform.appName) \($0.key.rawValue) \($0.value)" }.joined()
    }

    private func record(
        _ device: WorldDevice,
        _ entry: InboxEntry,
        _ event: DeviceEvent,
        _ id: NotificationID?,
        _ details: NotificationDetails?,
        isGood: Bool
    ) {
        var outcomes = JSONObject()
        for (platform, counts) in (details?.outcomes ?? [:]).sorted(by: { $0.key.rawValue < $1.key.rawValue })
        {
            var object = JSONObject()
            for (outcome, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                object[outcome.rawValue] = .number(count)
            }
            outcomes[platform.appName] = .object(object)
        }
        steps.append(
            .object([
                "scenario": .string(scenario), "step": .number(step),
                "notification": id.map { .string($0.text) } ?? .null,
                "state": details.map { .string($0.state.rawValue) } ?? .null, "outcomes": .object(outcomes),
                "device": .string(device.name), "platform": .string(device.platform.appName),
                "inboxId": .number(entry.id),
                "event": .string(event.name), "text": .string(entry.text ?? ""),
                "pushSha256": .string(Hex.encode(Digests.sha256(entry.notification.data))),
                "file": entry.file.map { .string($0) } ?? .null, "ok": .bool(isGood),
            ])
        )
    }

    /// A statement about something other than an inbox, with the value that was observed.
    func check(_ statement: String, _ holds: Bool, observed: String) {
        step += 1
        checkCount += 1
        Console.print("    [\(holds ? "ok" : "FAILED")] \(statement): \(observed)")
        if !holds { failureCount += 1 }
        steps.append(
            .object([
                "scenario": .string(scenario), "step": .number(step), "statement": .string(statement),
                "observed": .string(observed),
                "ok": .bool(holds),
            ])
        )
    }

    func failed(_ reason: String, isCounted: Bool = true) {
        failureCount += 1
        Console.print("    FAILED \(reason)")
    }

    func end() -> ExitCode {
        Console.print("\n\(checkCount) checks, \(failureCount) failed")
        return failureCount == 0 ? .success : .failure
    }

    func records() -> [UInt8] { JSONValue.array(steps).serialized() + [0x0A] }
}

import BackendClient
import HTTPMessages
import JSONBytes
import TidingsModels

/// Runs the commands that arrive on the control socket. Each ends in one object with `done`, `ok` and, on failure,
/// `error`.
struct ControlCommands: Sendable {
    let daemon: DeviceDaemon

    func run(_ command: JSONObject, _ reply: @escaping @Sendable (JSONObject) -> Void) async {
        var last: JSONObject
        do {
            last = try await act(command, reply)
            if last["ok"] == nil { last["ok"] = true }
        } catch {
            last = JSONObject(["ok": false, "error": .string(text(error))])
            if let status = (error as? BackendError)?.status ?? (error as? HubError)?.httpStatus {
                last["status"] = .number(status)
            }
        }
        last["done"] = true
        reply(last)
    }

    private func text(_ error: any Error) -> String {
        (error as? HubError)?.message ?? (error as? BackendError)?.message ?? String(describing: error)
    }

    private func act(
        _ command: JSONObject,
        _ reply: @escaping @Sendable (JSONObject) -> Void
    ) async throws -> JSONObject {
        func string(_ name: String) throws -> String {
            guard let text = command[name]?.stringValue else {
                throw DaemonFailure("The command needs '\(name)'.")
            }
            return text
        }
        func strings(_ name: String) -> [String] {
            (command[name]?.arrayValue ?? []).compactMap(\.stringValue)
        }
        let to = command["to"]?.stringValue
        switch command["command"]?.stringValue {
        case "status":
            if command["wait"] == true { _ = try await daemon.currentHandle() }
            return await daemon.status()
        case "login":
            try await daemon.login(
                user: try string("user"),
                password: try string("password"),
                tags: strings("tags")
            )
            return await daemon.status()
        case "logout":
            try await daemon.logout()
            return JSONObject()
        case "subscribe":
            try await daemon.subscribe(
                categories: strings("categories"),
                locale: command["locale"]?.stringValue
            )
            return await categories()
        case "categories": return await categories()
        case "send":
            let results: [DeviceDaemon.SendResult]
            if !strings("categories").isEmpty {
                results = try await daemon.send(categories: strings("categories"), text: try string("text"))
            } else {
                results = try await daemon.send(
                    to: try string("to"),
                    platforms: strings("platforms"),
                    text: try string("text")
                )
            }
            return report(results, reply)
        case "send-secure": return report([try await daemon.sendSecure(try string("text"), to: to)], reply)
        case "send-rich":
            let message = command["message"]?.stringValue ?? ""
            if let kind = command["kind"]?.stringValue {
                return report(
                    [
                        try await daemon.sendRich(
                            kind: kind,
                            content: try string("content"),
                            message: message,
                            to: to
                        )
                    ],
                    reply
                )
            }
            guard let content = Base64.decode(try string("content")) else {
                throw DaemonFailure("The content is not base64.")
            }
            return report(
                [try await daemon.sendRich(content, type: try string("type"), message: message, to: to)],
                reply
            )
        case "inbox":
            for entry in try await daemon.inboxEntries() { reply(Self.json(entry)) }
            return JSONObject()
        case "open":
            guard let id = command["id"]?.integerValue else { throw DaemonFailure("The command needs 'id'.") }
            return try await daemon.open(Int64(id), action: command["action"]?.stringValue)
        case let other: throw DaemonFailure("The command '\(other ?? "")' is not known.")
        }
    }

    private func categories() async -> JSONObject {
        let (wanted, confirmed) = await daemon.categories()
        return JSONObject([
            "wanted": .array(wanted.map { .string($0) }), "confirmed": .array(confirmed.map { .string($0) }),
        ])
    }

    private func report(_ results: [DeviceDaemon.SendResult], _ reply: (JSONObject) -> Void) -> JSONObject {
        for result in results {
            var object = JSONObject([
                "target": .string(result.target), "success": .bool(result.isSuccess),
                "reason": .string(result.reason),
            ])
            if let status = result.status { object["status"] = .number(status) }
            reply(object)
        }
        return JSONObject(["ok": .bool(results.allSatisfy(\.isSuccess))])
    }

    static func json(_ entry: InboxEntry) -> JSONObject {
        var object = JSONObject([
            "id": .number(entry.id), "received": .string(entry.received.description),
            "text": .string(entry.text ?? ""),
        ])
        if let type = entry.richType { object["richType"] = .string(type) }
        if let file = entry.file { object["file"] = .string(file) }
        if let content = entry.content { object["content"] = .string(content) }
        if entry.awaitsLogin { object["awaitsLogin"] = true }
        return object
    }
}

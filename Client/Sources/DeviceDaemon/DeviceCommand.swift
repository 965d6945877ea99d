import EventLoops
import Glibc
import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsModels

/// The program `tidings-device`: the daemon, and its remote control.
public enum DeviceCommand {
    private static let usage = """
        usage: tidings-device <command> [--state DIR] [options]

          run                      be a device: connect, register, receive, show (one JSON object per line)
            --gateway URL            the gateway (TIDINGS_GATEWAY)
            --backend URL            the app back end (TIDINGS_BACKEND)
            --hub STRING             a Listen connection string, for subscribe (TIDINGS_HUB_LISTEN)
            --hub-name NAME          the hub's name (default tidings)
            --send-hub STRING        opt-in: a connection string with Send, for send --category
            --ca FILE                a certificate authority to trust
            --platform NAME          apns (default), wns, fcm, browser (Web Push), mpns or adm
            --vapid-key KEY          Web Push: the only server that may send, its public key in base64url
            --installation           register by installation id instead of by handle
            --background             local notifications instead of alerts
            --delay SECONDS          before a local notification (default 0)
            --log LEVEL              debug, info (default), warning or error
            --exec COMMAND           run for each event, its JSON on standard input, for at most 60 seconds
          login USER [--tag TAG]   register this device for a user; the password is asked for or read from standard input
          logout                   delete the registration and forget the login
          subscribe [CATEGORY...]  follow these categories: any tags, for the news World Politics Business Technology Science
                                   Sports; none lists them, --none removes the registration
            --locale LANGUAGE        templates for localized news
          send --to USER [--platform apns,wns,fcm] TEXT
          send --category World,Sports TEXT
          send --secure TEXT [--to USER]
          send --rich FILE [--message TEXT] [--to USER]
          send --url URL | --coupon TEXT [--message TEXT] [--to USER]
          inbox                    what was received
          open ID [--action richPushMore]
          status [--wait]          connection, registration, subscriptions; --wait for a daemon that starts, and for its handle

        The state folder is --state, else $STATE_DIRECTORY, else ~/.local/state/tidings-device.
        """

    private static let options = [
        "state", "gateway", "backend", "hub", "hub-name", "send-hub", "ca", "platform", "vapid-key",
        "installation!",
        "background!", "delay", "exec", "log",
        "tag", "none!", "locale", "to", "category", "secure!", "rich", "url", "coupon", "message", "action",
        "wait!", "help!",
    ]

    /// Runs the command that the process was started with, and ends the process.
    public static func main() async -> Never {
        let arguments = Array(CommandLine.arguments.dropFirst())
        var code = ExitCode.success
        do {
            let reader = try OptionReader(Array(arguments.dropFirst()), known: options)
            guard let command = arguments.first, command != "help", command != "--help", !reader.has("help")
            else {
                Console.print(usage)
                exit(arguments.isEmpty ? ExitCode.usage.rawValue : 0)
            }
            let state = reader["state"] ?? StateFolder.defaultPath("tidings-device")
            code = command == "run" ? try await run(reader, state) : try control(command, reader, state)
        } catch let error as OptionError {
            Console.error("tidings-device: \(error)")
            code = .usage
        } catch let error as HubError {
            Console.error("tidings-device: \(error.message)")
            code = .usage
        } catch {
            Console.error("tidings-device: \(error)")
            code = .failure
        }
        exit(code.rawValue)
    }

    // MARK: run

    private static func configuration(_ options: OptionReader, _ state: String) throws -> DaemonConfiguration
    {
        func url(_ option: String, _ variable: String) throws -> HTTPURL? {
            guard let text = options[option] ?? environment(variable) else { return nil }
            guard let url = HTTPURL(text) else {
                throw OptionError("--\(option) '\(text)' is not an http or https URL")
            }
            return url
        }
        guard let gateway = try url("gateway", "TIDINGS_GATEWAY") else {
            throw OptionError("--gateway is missing")
        }
        let name = options["platform"] ?? "apns"
        guard let platform = Platform(appName: name) else {
            throw OptionError("--platform '\(name)' is not apns, wns, fcm, browser, mpns or adm")
        }
        var configuration = DaemonConfiguration(
            platform: platform,
            statePath: state,
            gateway: gateway,
            backend: try url("backend", "TIDINGS_BACKEND"),
            hub: try (options["hub"] ?? environment("TIDINGS_HUB_LISTEN")).map {
                try HubConnectionString(parsing: $0)
            },
            hubName: options["hub-name"] ?? "tidings"
        )
        configuration.sendHub = try options["send-hub"].map { try HubConnectionString(parsing: $0) }
        configuration.authorityFile = options["ca"] ?? environment("TIDINGS_CA")
        configuration.isBackground = options.has("background")
        if options.has("installation") { configuration.style = .installation }
        if let delay = options["delay"] {
            guard let seconds = Double(delay), seconds >= 0, seconds <= 86400 else {
                throw OptionError("--delay '\(delay)' is not a number of seconds")
            }
            configuration.localNotificationDelay = .milliseconds(Int64(seconds * 1000))
        }
        if let key = options["vapid-key"] {
            guard platform == .browser else { throw OptionError("--vapid-key is for --platform browser") }
            configuration.vapidKey = key
        }
        configuration.execCommand = options["exec"]
        return configuration
    }

    private static func log(_ options: OptionReader) throws -> Log {
        let name = options["log"] ?? "info"
        guard let level = Log.Level(rawValue: name) else {
            throw OptionError("--log '\(name)' is not debug, info, warning or error")
        }
        return Log("device", to: .standardError(from: level))
    }

    private static func run(_ options: OptionReader, _ state: String) async throws -> ExitCode {
        try options.expect(atMost: 0)
        let signals = Signals.stream()
        let configuration = try configuration(options, state)
        let daemon = try DeviceDaemon(configuration, time: SystemTimeSource(), log: try log(options))
        let events = await daemon.events()
        let command = configuration.execCommand.map { EventCommand($0) }
        // Ends when the daemon stops and closes the stream; waited for below.
        let printer = Task {
            for await event in events {
                Console.print(event.line)
                if command?.submit(event) == false {
                    Console.error("tidings-device: --exec is too slow: skipped for \(event.line)")
                }
            }
            await command?.finish()
        }
        let commands = ControlCommands(daemon: daemon)
        let control = try ControlServer(folder: state) { await commands.run($0, $1) }
        try await daemon.start()
        ServiceManager.notify("READY=1")
        for await signal in signals where signal == .terminate { break }
        ServiceManager.notify("STOPPING=1")
        control.stop()
        await daemon.stop()
        await printer.value
        return .success
    }

    // MARK: Remote control

    private static func control(
        _ command: String,
        _ options: OptionReader,
        _ state: String
    ) throws -> ExitCode {
        guard let request = try request(command, options) else {
            throw OptionError("'\(command)' is not a command; see tidings-device help")
        }
        let last = try ControlClient.send(request, folder: state, waits: options.has("wait")) { line in
            if let target = line["target"]?.stringValue {
                Console.print(sendLine(target, line))
            } else {
                Console.print(JSONValue.object(line).text)
            }
        }
        var shown = last
        shown["done"] = nil
        shown["ok"] = nil
        guard last["ok"] == true else {
            if let error = last["error"]?.stringValue {
                let status = last["status"]?.integerValue.map { "\($0) " } ?? ""
                Console.error("tidings-device: \(status)\(error)")
            }
            return .failure
        }
        if !shown.isEmpty { Console.print(JSONValue.object(shown).text) }
        return .success
    }

    /// One line per platform or category, as in the tutorial's results text.
    private static func sendLine(_ target: String, _ line: JSONObject) -> String {
        let status = line["status"]?.integerValue.map(String.init) ?? "no answer"
        return
            "\(target): \(line["success"] == true ? "ok" : "failed") \(status) \(line["reason"]?.stringValue ?? "")"
    }

    private static func list(_ values: [String]) -> JSONValue {
        .array(values.flatMap { $0.split(separator: ",") }.map { .string(String($0)) })
    }

    private static func request(_ command: String, _ options: OptionReader) throws -> JSONObject? {
        switch command {
        case "status", "inbox", "logout":
            try options.expect(atMost: 0)
            var request = JSONObject(["command": .string(command)])
            if command == "status", options.has("wait") { request["wait"] = true }
            return request
        case "login":
            guard options.rest.count == 1 else {
                throw OptionError("login takes the user name alone; the password is asked for")
            }
            guard let password = Console.readPassword("Password: ") else {
                throw OptionError("no password on standard input")
            }
            return JSONObject([
                "command": "login", "user": .string(options.rest[0]), "password": .string(password),
                "tags": list(options.values["tag"] ?? []),
            ])
        case "subscribe":
            if options.rest.isEmpty, !options.has("none") { return JSONObject(["command": "categories"]) }
            guard options.rest.isEmpty || !options.has("none") else {
                throw OptionError("--none goes without categories")
            }
            var request = JSONObject(["command": "subscribe", "categories": list(options.rest)])
            if let locale = options["locale"] { request["locale"] = .string(locale) }
            return request
        case "open":
            try options.expect(atMost: 1)
            guard let id = options.rest.first.flatMap({ Int($0) }) else {
                throw OptionError("open needs the id of a notification")
            }
            var request = JSONObject(["command": "open", "id": .number(id)])
            if let action = options["action"] { request["action"] = .string(action) }
            return request
        case "send": return try sendRequest(options)
        default: return nil
        }
    }

    private static func sendRequest(_ options: OptionReader) throws -> JSONObject {
        var request = JSONObject(["message": .string(options["message"] ?? "")])
        if let to = options["to"] { request["to"] = .string(to) }
        let text = options.rest.joined(separator: " ")
        if let kind = ["rich", "url", "coupon", "secure"].first(where: options.has) {
            try options.refuse(["platform", "category"], with: "--\(kind)")
        }
        if let file = options["rich"] {
            guard let bytes = try Files.read(file) else {
                throw OptionError("the file '\(file)' does not exist")
            }
            guard let type = mediaType(file) else {
                throw OptionError("'\(file)' is not a png, jpg, gif, webp, mp3, ogg or wav")
            }
            request["command"] = "send-rich"
            request["content"] = .string(Base64.encode(bytes))
            request["type"] = .string(type)
        } else if let url = options["url"] ?? options["coupon"] {
            request["command"] = "send-rich"
            request["kind"] = .string(options["url"] == nil ? "coupon" : "url")
            request["content"] = .string(url)
        } else if options.has("secure") {
            guard !text.isEmpty else { throw OptionError("send --secure needs the text") }
            request["command"] = "send-secure"
            request["text"] = .string(text)
        } else {
            guard !text.isEmpty else { throw OptionError("send needs the text") }
            if options.has("category") { try options.refuse(["platform", "to"], with: "--category") }
            request["command"] = "send"
            request["text"] = .string(text)
            if let categories = options.values["category"] {
                request["categories"] = list(categories)
            } else {
                guard options["to"] != nil else {
                    throw OptionError("send needs --to USER or --category NAME")
                }
                let platforms = list(options.values["platform"] ?? ["wns", "fcm", "apns"])
                guard platforms.arrayValue?.isEmpty == false else {
                    throw OptionError("--platform is empty; apns, wns, fcm and browser can be named")
                }
                request["platforms"] = platforms
            }
        }
        return request
    }

    private static func mediaType(_ file: String) -> String? {
        switch file.split(separator: ".").last?.lowercased() {
        case "png": "image/png"
        case "jpg", "jpeg": "image/jpeg"
        case "gif": "image/gif"
        case "webp": "image/webp"
        case "mp3": "audio/mpeg"
        case "ogg": "audio/ogg"
        case "wav": "audio/wav"
        default: nil
        }
    }
}

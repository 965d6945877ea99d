import AppBackend
import HTTPMessages
import HubClient
import HubCore
import JSONBytes
import OutboundHTTP
import ProcessLifecycle
import PushCredentials
import TidingsModels

/// What every operator's command does around its own work.
enum Operator {
    /// Reads the options, prints the help that is asked for, and turns a failure into one line and an exit code.
    static func run(
        _ help: String,
        _ arguments: [String],
        known: [String],
        _ body: (OptionReader) async throws -> ExitCode
    ) async -> ExitCode {
        do {
            let options = try OptionReader(arguments, known: known)
            if options.has("help") {
                Console.print(help)
                return .success
            }
            return try await body(options)
        } catch let error as ConfigurationError {
            Console.error("tidings: \(error)")
            return .usage
        } catch let error as OptionError {
            Console.error("tidings: \(error)")
            return .usage
        } catch let error as HubError {
            Console.error("tidings: \(error.httpStatus) \(error.message)")
            return error.code == .unavailable
                ? .unavailable : error.code == .unauthorized ? .noPermission : .failure
        } catch {
            Console.error("tidings: \(error)")
            return .failure
        }
    }
}

/// Commands that speak to a hub, ours or Azure's, over its REST protocol.
enum OperatorCommands {
    private static let common = ["connection", "hub", "ca", "json!", "help!"]
    private static let commonHelp = """
          --connection STRING   the hub's connection string, or a file that holds it (TIDINGS_CONNECTION)
          --hub NAME            the hub's name (TIDINGS_HUB, default tidings)
          --ca FILE             a certificate authority to trust (TIDINGS_CA)
          --json                machine-readable output
        """

    static func client(_ options: OptionReader) throws -> HubClient {
        guard var text = options["connection"] ?? environment("TIDINGS_CONNECTION") else {
            throw ConfigurationError("--connection is missing: the connection string of the hub")
        }
        if !text.contains("=") {
            guard let bytes = try Files.read(text) else {
                throw ConfigurationError(
                    "--connection is neither a connection string (Endpoint=…;SharedAccessKeyName=…;SharedAccessKey=…) nor a file that exists"
                )
            }
            text = ASCII.trimmed(String(decoding: bytes, as: UTF8.self))
        }
        let connection: HubConnectionString
        do throws(HubError) { connection = try HubConnectionString(parsing: text) } catch {
            throw ConfigurationError("--connection: \(error.message)")
        }
        var trust = OutboundTrust()
        if let file = options["ca"] ?? environment("TIDINGS_CA") {
            guard Files.exists(file) else {
                throw ConfigurationError("--ca: the file \(file) does not exist")
            }
            trust.authorityFiles[connection.endpoint.origin] = file
        }
        return HubClient(
            connection,
            hub: options["hub"] ?? environment("TIDINGS_HUB") ?? TidingsServer.developmentHub,
            client: HTTPClient(trust: trust),
            time: SystemTimeSource()
        )
    }

    static func attempt(
        _ usage: String,
        _ arguments: [String],
        known: [String],
        _ body: (OptionReader) async throws -> ExitCode
    ) async -> ExitCode {
        await Operator.run(usage + "\n" + commonHelp, arguments, known: common + known, body)
    }

    // MARK: outcomes, registrations

    private static func notificationID(_ options: OptionReader) throws -> NotificationID {
        try options.expect(atMost: 1)
        guard let text = options.rest.first else {
            throw ConfigurationError("the notification id is missing")
        }
        guard let id = NotificationID(text) else {
            throw ConfigurationError("'\(text)' is not a notification id, as 'tidings send' prints it")
        }
        return id
    }

    static func cancel(_ arguments: [String]) async -> ExitCode {
        await attempt("usage: tidings cancel ID [options]\n", arguments, known: []) { options in
            let id = try notificationID(options)
            try await client(options).cancel(id)
            Console.print("cancelled \(id)")
            return .success
        }
    }

    static func outcomes(_ arguments: [String]) async -> ExitCode {
        await attempt("usage: tidings outcomes ID [options]\n", arguments, known: []) { options in
            let id = try notificationID(options)
            let details = try await client(options).details(id)
            Console.print(options.has("json") ? json(details).text : summary(details))
            return .success
        }
    }

    static func registrations(_ arguments: [String]) async -> ExitCode {
        await attempt(
            "usage: tidings registrations [--tag TAG | --handle HANDLE] [--top N] [options]\n",
            arguments,
            known: ["tag", "handle", "top"]
        ) { options in
            try options.expect(atMost: 0)
            if options.has("tag") { try options.refuse(["handle"], with: "--tag") }
            let client = try client(options)
            let countMax = try options.count("top") ?? 1000
            let found: [Registration]
            if let tag = options["tag"] {
                found = try await client.registrations(tag: try HubTag(tag), countMax: countMax)
            } else if let handle = options["handle"] {
                found = try await client.registrations(handle: handle, countMax: countMax)
            } else {
                found = try await client.registrations(countMax: countMax)
            }
            for registration in found {
                let content = registration.content
                if options.has("json") {
                    Console.print(
                        JSONValue.object([
                            "id": .string(registration.id.text), "etag": .number(registration.etag),
                            "platform": .string(content.handle.platform.format),
                            "handle": .string(content.handle.text),
                            "tags": .array(content.tags.map { .string($0.text) }),
                            "template": content.template.map { .string($0.name ?? "") } ?? .null,
                        ]).text
                    )
                } else {
                    let kind = content.template.map { "template \($0.name ?? "")" } ?? "native"
                    Console.print(
                        "\(registration.id)  \(content.handle.platform.format)  \(kind)  \(content.handle.masked)  \(content.tags.map(\.text).joined(separator: ","))"
                    )
                }
            }
            return .success
        }
    }
}

/// `tidings users`: who may sign in at the app back end outside development.
enum UserCommands {
    private static let usage = """
        usage: tidings users add NAME | remove NAME | list  [--state DIR]

        The password is asked for, or read from standard input; never an argument. Stop the server first: a state
        folder belongs to one process.
        """

    static func run(_ arguments: [String]) async -> ExitCode {
        await Operator.run(usage, arguments, known: ["state", "help!"]) { options in
            let path = options["state"] ?? StateFolder.defaultPath("tidings")
            guard options.rest.first == "add" || Files.exists(path + "/backend.sqlite") else {
                throw ConfigurationError(
                    "\(path)/backend.sqlite does not exist: 'tidings serve' or 'users add' makes it"
                )
            }
            let folder = try StateFolder(path: path)
            let code = try await act(options.rest, folder.path)
            withExtendedLifetime(folder) {}
            return code
        }
    }

    private static func act(_ words: [String], _ path: String) async throws -> ExitCode {
        guard words.count <= 2 else { throw ConfigurationError("'\(words[2])' is one argument too many") }
        let store = try BackendStore(path: path + "/backend.sqlite")
        defer { store.close() }
        switch (words.first, words.dropFirst().first) {
        case ("list", nil):
            for name in try await store.userNames() { Console.print(name) }
            return .success
        case ("add", let name?):
            do throws(HubError) { _ = try HubTag.username(name) } catch {
                throw ConfigurationError("the user name '\(name)' cannot be a tag: \(error.message)")
            }
            guard let password = Console.readPassword("Password for \(name): "), !password.isEmpty else {
                throw ConfigurationError("the password is empty")
            }
            try await store.setUser(name, passwordHash: try PasswordHash.make(password))
            Console.print("added \(name)")
            return .success
        case ("remove", let name?):
            guard try await store.removeUser(name) else {
                Console.error("tidings: there is no user '\(name)'")
                return .noUser
            }
            Console.print("removed \(name)")
            return .success
        default:
            Console.error(usage)
            return .usage
        }
    }
}

/// `tidings keys`: the connection strings of a state folder.
enum KeyCommand {
    private static let usage = """
        usage: tidings keys [--state DIR] [--endpoint URL] [--hub NAME]

        Prints each policy's connection string; keys are secrets.
        """

    static func run(_ arguments: [String]) async -> ExitCode {
        await Operator.run(usage, arguments, known: ["state", "endpoint", "hub", "help!"]) { options in
            try options.expect(atMost: 0)
            let path = options["state"] ?? StateFolder.defaultPath("tidings")
            guard let endpoint = HTTPURL(options["endpoint"] ?? "https://localhost:8081/") else {
                throw ConfigurationError("--endpoint is not an http or https URL")
            }
            guard Files.exists(path + "/keys/hubs.json") else {
                throw ConfigurationError(
                    "\(path)/keys/hubs.json does not exist: 'tidings serve' makes it at its first start"
                )
            }
            let catalog = try HubCatalog(keys: path + "/keys")
            func show(_ owner: String, _ policies: [AccessPolicy]) {
                for policy in policies {
                    let string = HubConnectionString(
                        endpoint: endpoint,
                        keyName: policy.name,
                        key: policy.primaryKey
                    )
                    Console.print("\(owner)  \(policy.rights.text)\n  \(string.text)")
                }
            }
            if let name = options["hub"] {
                guard let entry = catalog[name] else {
                    throw ConfigurationError("there is no hub '\(name)' in \(path)")
                }
                show(entry.description.name, entry.description.policies)
            } else {
                show("every hub", catalog.namespacePolicies)
                for entry in catalog.entries.values.sorted(by: { $0.description.name < $1.description.name })
                {
                    show(entry.description.name, entry.description.policies)
                }
            }
            return .success
        }
    }
}

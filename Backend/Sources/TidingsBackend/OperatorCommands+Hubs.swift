import HTTPMessages
import HubAPI
import HubClient
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// `tidings hubs` and `tidings installations`.
extension OperatorCommands {
    private static let hubsUsage = """
        usage: tidings hubs list | show NAME | create NAME | delete NAME | disable NAME | enable NAME | ttl NAME DURATION
               tidings hubs credential NAME PLATFORM (NAME=VALUE... | --remove)
               tidings hubs rotate NAME POLICY [--secondary]

        Takes a connection string of the namespace ('tidings keys' prints it); show, disable, enable, ttl, credential and rotate also one of the
        hub with Manage. DURATION is such as P90D, or 'never'. A value that begins with @ is read from that file (Token=@AuthKey.p8,
        ApnsCertificate=@push.p12).
        rotate gives a policy a new primary (or secondary) key and prints its connection string.

        """

    static func hubs(_ arguments: [String]) async -> ExitCode {
        await attempt(hubsUsage, arguments, known: ["remove!", "secondary!"]) { options in
            let connection = try client(options)
            let namespace = NamespaceClient(connection)
            let words = options.rest
            guard let verb = words.first else {
                throw ConfigurationError("the verb is missing: list, show, create, …")
            }
            if verb == "list" {
                try options.expect(atMost: 1)
                for name in try await namespace.names() { Console.print(name) }
                return .success
            }
            guard words.count >= 2 else { throw ConfigurationError("'\(verb)' needs the name of a hub") }
            let name = words[1]
            func existing() async throws -> HubDescription {
                guard let hub = try await namespace.hub(name) else {
                    throw HubError(.notFound, "The hub '\(name)' does not exist.")
                }
                return hub
            }
            if verb != "credential" { try options.expect(atMost: ["ttl", "rotate"].contains(verb) ? 3 : 2) }
            switch verb {
            case "show": show(try await existing(), options)
            case "create":
                let made = try await namespace.create(HubDescription(name: name))
                show(made, options)
            case "delete":
                guard try await namespace.delete(name) else {
                    throw HubError(.notFound, "The hub '\(name)' does not exist.")
                }
                Console.print("deleted \(name)")
            case "disable", "enable", "ttl", "credential", "rotate":
                let changed = try change(try await existing(), verb, words, options)
                let updated = try await namespace.update(changed)
                if verb == "rotate", let policy = updated.policies.first(where: { $0.name == words.last }) {
                    let key = options.has("secondary") ? policy.secondaryKey : policy.primaryKey
                    Console.print(connection.connectionString(keyName: policy.name, key: key))
                } else {
                    show(updated, options)
                }
            default:
                throw ConfigurationError(
                    "'\(verb)' is not list, show, create, delete, disable, enable, ttl, credential or rotate"
                )
            }
            return .success
        }
    }

    private static func change(
        _ hub: HubDescription,
        _ verb: String,
        _ words: [String],
        _ options: OptionReader
    ) throws -> HubDescription {
        var hub = hub
        switch verb {
        case "disable", "enable": hub.isDisabled = verb == "disable"
        case "ttl":
            guard words.count == 3 else {
                throw ConfigurationError("ttl needs a duration such as P90D, or 'never'")
            }
            guard let duration = words[2] == "never" ? .some(nil) : DurationText.parse(words[2]) else {
                throw ConfigurationError("'\(words[2])' is not a duration such as P90D")
            }
            hub.registrationTTL = duration
        case "rotate":
            guard words.count == 3, let index = hub.policies.firstIndex(where: { $0.name == words[2] }) else {
                throw ConfigurationError(
                    "rotate needs a policy: \(hub.policies.map(\.name).joined(separator: ", "))"
                )
            }
            // The hub makes the new key.
            if options.has("secondary") {
                hub.policies[index].secondaryKey = ""
            } else {
                hub.policies[index].primaryKey = ""
            }
        default:
            guard words.count >= 3, let platform = Platform(installationName: words[2]) else {
                throw ConfigurationError(
                    "credential needs a platform: \(Platform.allCases.map(\.rawValue).joined(separator: ", "))"
                )
            }
            hub.credentials[platform] = options.has("remove") ? nil : try properties(words.dropFirst(3))
        }
        return hub
    }

    private static func properties(_ words: ArraySlice<String>) throws -> [String: String] {
        var properties: [String: String] = [:]
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
                String.init
            )
            guard parts.count == 2, !parts[0].isEmpty else {
                throw ConfigurationError("'\(word)' is not of the form NAME=VALUE")
            }
            var value = parts[1]
            if value.hasPrefix("@") {
                guard let bytes = try Files.read(String(value.dropFirst())) else {
                    throw ConfigurationError("the file '\(value.dropFirst())' does not exist")
                }
                // What is no text, as PKCS#12, stands in a description as base64.
                value = String(validating: bytes, as: UTF8.self) ?? Base64.encode(bytes)
            }
            properties[parts[0]] = value
        }
        return properties
    }

    /// Without keys and secrets.
    private static func show(_ hub: HubDescription, _ options: OptionReader) {
        let credentials = hub.credentials.keys.map(\.rawValue).sorted()
        let policies = hub.policies.map { "\($0.name) (\($0.rights.text))" }
        if options.has("json") {
            // An answer to an update tells no creation.
            return Console.print(
                JSONValue.object([
                    "name": .string(hub.name),
                    "registrationTtl": .string(DurationText.text(hub.registrationTTL)),
                    "disabled": .bool(hub.isDisabled), "credentials": .array(credentials.map { .string($0) }),
                    "policies": .array(hub.policies.map { .string($0.name) }),
                    "created": hub.created.milliseconds > 0 ? .string(hub.created.description) : .null,
                ]).text
            )
        }
        Console.print(
            """
            \(hub.name)\(hub.isDisabled ? "  disabled" : "")
              registrations live \(hub.registrationTTL.map { DurationText.text($0) } ?? "for ever")
              credentials: \(credentials.isEmpty ? "none" : credentials.joined(separator: ", "))
              policies: \(policies.joined(separator: ", "))
            """
        )
    }

    // MARK: Installations

    private static let installationsUsage = """
        usage: tidings installations get ID | put FILE | delete ID | patch ID OP PATH [VALUE] [options]

        put reads the installation's JSON from FILE, or from standard input with '-'. OP is add, remove or replace.

        """

    static func installations(_ arguments: [String]) async -> ExitCode {
        await attempt(installationsUsage, arguments, known: []) { options in
            let words = options.rest
            guard words.count >= 2 else {
                throw ConfigurationError("get, put, delete or patch and its argument are missing")
            }
            let client = try client(options)
            switch (words[0], words.count) {
            case ("get", 2):
                guard let found = try await client.installation(words[1]) else {
                    throw HubError(.notFound, "Installation not found.")
                }
                Console.print(InstallationJSON.value(found).text)
            case ("put", 2):
                guard let bytes = try Files.read(words[1] == "-" ? "/dev/stdin" : words[1]) else {
                    throw ConfigurationError("the file \(words[1]) does not exist")
                }
                let id = (try? JSONValue(parsing: bytes))?["installationId"]?.stringValue
                guard let id else {
                    throw ConfigurationError("\(words[1]) is no JSON object with an installationId")
                }
                try await client.put(try InstallationJSON.read(bytes, id: id))
                Console.print("put \(id)")
            case ("delete", 2):
                try await client.deleteInstallation(words[1])
                Console.print("deleted \(words[1])")
            case ("patch", 4), ("patch", 5):
                guard let operation = InstallationChange.Operation(rawValue: words[2]) else {
                    throw ConfigurationError("'\(words[2])' is not add, remove or replace")
                }
                try await client.patch(
                    words[1],
                    [InstallationChange(operation, words[3], words.count == 5 ? words[4] : nil)]
                )
                Console.print("patched \(words[1])")
            default:
                throw ConfigurationError(
                    "'\(words.joined(separator: " "))' is not get ID, put FILE, delete ID or patch ID OP PATH [VALUE]"
                )
            }
            return .success
        }
    }
}

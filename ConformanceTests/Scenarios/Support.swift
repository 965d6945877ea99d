import HTTPMessages
import HubClient
import JSONBytes
import ProcessLifecycle
import PushCredentials
import TidingsConformance
import TidingsModels

/// The header of the tutorials' sign-in, where the password is the user name.
func basic(_ user: String, _ password: String? = nil) -> String {
    "Basic " + Base64.encode(Array("\(user):\(password ?? user)".utf8))
}

extension World {
    /// A request to the app back end.
    func backend(
        _ method: String,
        _ path: String,
        as user: String?,
        json: String? = nil,
        fields: HTTPFields = [:],
        body: [UInt8]? = nil
    ) async throws -> HTTPAnswer {
        var fields = fields
        if let user { fields["Authorization"] = basic(user) }
        if json != nil, fields["Content-Type"] == nil { fields["Content-Type"] = "application/json" }
        return try await request(
            method,
            try backendURL + path,
            fields: fields,
            body: json.map { Array($0.utf8) } ?? body
        )
    }
}

extension WorldDevice {
    /// Gives the handle back, and waits for a fresh one: the gateway has then forgotten the old one.
    @discardableResult
    func renewHandle() async throws -> String {
        let old = try await handle()
        try await daemon.renewHandle()
        while true {
            let event = try await nextEvent("handle")
            if let new = event["handle"], new != old { return new }
        }
    }
}

extension World {
    /// Returns once the gateway has noticed that so many devices are connected.
    func devicesConnected(_ count: Int) async throws {
        let wanted = "tidings_gateway_devices_connected \(count)"
        while try await !request("GET", gatewayURL + "/-/metrics").text.split(separator: "\n").contains(
            wanted[...]
        ) {
            // The metrics are all that tells it; nobody is told of a change.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A hub's client with the key of the namespace.
    func namespaceClient(_ name: String) throws -> HubClient {
        HubClient(
            try HubConnectionString(parsing: try server.endpoints.namespaceConnectionString ?? ""),
            hub: name,
            client: try httpClient(),
            time: clock
        )
    }

    /// A hub `garden` that is made with these credentials.
    func describedHub(_ credentials: [Platform: [String: String]]) async throws -> HubClient {
        _ = try await NamespaceClient(try namespaceClient(hubName)).create(
            HubDescription(name: "garden", credentials: credentials)
        )
        return try namespaceClient("garden")
    }

    /// Registers a device's handle straight at the hub, for native sends to a tag.
    @discardableResult
    func registerNative(_ device: WorldDevice, _ platform: Platform, tag: String) async throws -> Registration
    {
        try await registerNative(device.handle(), platform, tag: tag)
    }

    /// A shared access signature for a path of the hub.
    func signature(_ path: String, full: Bool = true, expires: Int64? = nil) throws -> String {
        let text = try connectionString(full: full)
        let connection = try HubConnectionString(parsing: text)
        return SharedAccessSignature.make(
            resource: try hubURL + path,
            keyName: connection.keyName,
            key: text.split(separator: "=", maxSplits: 3).last.map(String.init) ?? "",
            expires: expires.map { Timestamp(seconds: $0) } ?? clock.now + .seconds(600)
        )
    }

    /// A request to the hub, signed unless it brings its own authorization.
    func signed(
        _ method: String,
        _ path: String,
        fields: HTTPFields = [:],
        body: String? = nil,
        full: Bool = true
    ) async throws -> HTTPAnswer {
        var fields = fields
        if fields["Authorization"] == nil {
            fields["Authorization"] = try signature("/" + hubName, full: full)
        }
        return try await request(method, try hubURL + path, fields: fields, body: body.map { Array($0.utf8) })
    }

    @discardableResult
    func registerNative(_ handle: String, _ platform: Platform, tag: String) async throws -> Registration {
        try await hub().create(
            RegistrationContent(
                handle: try PlatformHandle(shown: handle, platform: platform),
                tags: [try HubTag(tag)]
            )
        )
    }
}

/// A small picture whose bytes differ by `seed`.
func picture(_ seed: UInt8, byteCount: Int = 5000) -> [UInt8] {
    [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        + (0..<byteCount).map { UInt8(truncatingIfNeeded: $0 &* 31) &+ seed }
}

/// A folder that is removed afterwards.
enum ScratchFolder {
    static func run<Value>(_ body: (String) async throws -> Value) async throws -> Value {
        let path = try Files.makeScratchFolder("tidings-test")
        defer { Files.removeTree(path) }
        return try await body(path)
    }
}

enum Passwords {
    static func hash(_ password: String) throws -> String { try PasswordHash.make(password) }
}

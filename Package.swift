// swift-tools-version: 6.2
import PackageDescription

/// The settings that every Swift target shares: `docs/decisions/0001-swift-settings.md`.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

/// Tests import what their module under test imports; naming each of those again would say nothing.
let testSettings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .treatAllWarnings(as: .error),
]

enum Side: String {
    case shared = "Shared", backend = "Backend", client = "Client"
}

func library(_ name: String, in side: Side, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "\(side.rawValue)/Sources/\(name)",
        swiftSettings: settings
    )
}

func program(
    _ name: String,
    path: String,
    exclude: [String] = [],
    _ dependencies: [Target.Dependency]
) -> Target {
    .executableTarget(
        name: name,
        dependencies: dependencies,
        path: path,
        exclude: exclude,
        swiftSettings: settings
    )
}

func tests(_ name: String, path: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies, path: path, swiftSettings: testSettings)
}

func cLibrary(_ name: String, in side: Side = .shared) -> Target {
    .systemLibrary(name: name, path: "\(side.rawValue)/CLibraries/\(name)")
}

/// The fuzzer links only under its sanitizer: `make fuzz` sets this.
let fuzzing: [Target] =
    Context.environment["TIDINGS_FUZZ"] == nil
    ? []
    : [program("tidings-fuzz", path: "Backend/Fuzz/Driver", ["FuzzTargets"])]

let package = Package(
    name: "Tidings",
    products: [
        .library(name: "TidingsModels", targets: ["TidingsModels"]),
        .library(
            name: "TidingsClient",
            targets: ["HubClient", "BackendClient", "GatewayConnection", "DeviceDaemon"]
        ),
        .library(name: "TidingsBackend", targets: ["TidingsBackend", "AppBackend"]),
        .library(name: "TidingsConformance", targets: ["TidingsConformance"]),
        .executable(name: "tidings", targets: ["tidings"]),
        .executable(name: "tidings-device", targets: ["tidings-device"]),
        .executable(name: "tidings-demo", targets: ["tidings-demo"]),
        .executable(name: "tidings-benchmarks", targets: ["tidings-benchmarks"]),
    ],
    targets: [
        // C libraries, as the distribution ships them.
        cLibrary("CTidingsOpenSSL"), cLibrary("CTidingsUV"), cLibrary("CTidingsNGHTTP2"),
        cLibrary("CTidingsCurl"), cLibrary("CTidingsSQLite"), cLibrary("CTidingsExpat"),
        cLibrary("CTidingsRoaring", in: .backend),

        // Shared: rules first, then the shells around one C library each.
        library("TidingsModels", in: .shared),
        library("JSONBytes", in: .shared),
        library("XMLBytes", in: .shared, ["CTidingsExpat"]),
        library("HTTPMessages", in: .shared),
        library("HubAPI", in: .shared, ["TidingsModels", "JSONBytes", "XMLBytes", "HTTPMessages"]),
        library("DeviceLink", in: .shared, ["TidingsModels", "JSONBytes", "HTTPMessages"]),
        library("WebSocketFraming", in: .shared),
        library("PushTelemetry", in: .shared, ["TidingsModels", "JSONBytes"]),
        library("ProcessLifecycle", in: .shared, ["TidingsModels", "PushTelemetry", "JSONBytes"]),
        library("EventLoops", in: .shared, ["CTidingsUV", "PushTelemetry"]),
        library(
            "TLSTransport",
            in: .shared,
            ["CTidingsOpenSSL", "CTidingsUV", "EventLoops", "PushTelemetry"]
        ),
        library(
            "OutboundHTTP",
            in: .shared,
            [
                "CTidingsCurl", "CTidingsNGHTTP2", "CTidingsUV", "EventLoops", "TLSTransport", "HTTPMessages",
                "PushTelemetry",
            ]
        ),
        library("SQLiteStorage", in: .shared, ["CTidingsSQLite", "PushTelemetry"]),
        library(
            "PushCredentials",
            in: .shared,
            ["CTidingsOpenSSL", "HTTPMessages", "JSONBytes", "TidingsModels"]
        ),
        library(
            "HubClient",
            in: .shared,
            [
                "TidingsModels", "HubAPI", "OutboundHTTP", "HTTPMessages", "PushCredentials", "XMLBytes",
                "JSONBytes",
            ]
        ),

        // Backend, in the order that a notification passes through it.
        library(
            "HTTPServing",
            in: .backend,
            [
                "CTidingsNGHTTP2", "EventLoops", "TLSTransport", "WebSocketFraming", "HTTPMessages",
                "PushTelemetry",
                "ProcessLifecycle",
            ]
        ),
        library(
            "AppBackend",
            in: .backend,
            [
                "HubAPI", "HubClient", "HTTPServing", "SQLiteStorage", "PushCredentials", "TidingsModels",
                "JSONBytes",
                "XMLBytes", "ProcessLifecycle",
                "HTTPMessages", "PushTelemetry",
            ]
        ),
        library(
            "HubServer",
            in: .backend,
            [
                "HubCore", "HubAPI", "HTTPServing", "PushCredentials", "TidingsModels", "HTTPMessages",
                "PushTelemetry", "JSONBytes",
            ]
        ),
        library(
            "HubCore",
            in: .backend,
            ["TidingsModels", "JSONBytes", "XMLBytes", "HTTPMessages", "HubAPI"]
        ),
        library("TagIndex", in: .backend, ["HubCore", "TidingsModels", "CTidingsRoaring"]),
        library("HubStore", in: .backend, ["HubCore", "TidingsModels", "SQLiteStorage", "PushTelemetry"]),
        library(
            "PlatformSenders",
            in: .backend,
            [
                "HubCore", "HubAPI", "TidingsModels", "OutboundHTTP", "PushCredentials", "JSONBytes",
                "XMLBytes",
                "HTTPMessages", "PushTelemetry",
            ]
        ),
        library(
            "PushGateway",
            in: .backend,
            [
                "DeviceLink", "HTTPServing", "WebSocketFraming", "SQLiteStorage", "PushCredentials",
                "TidingsModels",
                "JSONBytes", "XMLBytes", "HTTPMessages", "PushTelemetry",
            ]
        ),
        library(
            "TidingsBackend",
            in: .backend,
            [
                "HTTPServing", "AppBackend", "HubServer", "HubCore", "TagIndex", "HubStore",
                "PlatformSenders",
                "PushGateway", "TidingsModels", "JSONBytes", "XMLBytes", "HTTPMessages", "EventLoops",
                "TLSTransport",
                "OutboundHTTP", "HubClient", "HubAPI", "SQLiteStorage", "PushCredentials", "PushTelemetry",
                "ProcessLifecycle", "WebSocketFraming",
            ]
        ),
        program("tidings", path: "Backend/Sources/tidings", ["TidingsBackend"]),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "HTTPMessages", "HTTPServing", "WebSocketFraming", "DeviceLink", "HubAPI", "HubCore",
                "JSONBytes", "PushCredentials", "TagIndex", "TidingsModels", "XMLBytes", "HubServer",
                "PushGateway", "PushTelemetry",
            ],
            path: "Backend/Fuzz/Targets",
            swiftSettings: settings
        ),
        program(
            "tidings-benchmarks",
            path: "Backend/Benchmarks",
            // Scripts for the peers that are written in Python.
            exclude: ["Peers"],
            [
                "GatewayConnection", "EventLoops", "TLSTransport", "HTTPMessages", "HubAPI", "HubClient",
                "HubCore", "JSONBytes", "OutboundHTTP", "PlatformSenders", "ProcessLifecycle",
                "PushCredentials", "SQLiteStorage",
                "TidingsModels",
            ]
        ),

        // Client.
        library(
            "BackendClient",
            in: .client,
            ["TidingsModels", "HubAPI", "OutboundHTTP", "HTTPMessages", "JSONBytes"]
        ),
        library(
            "GatewayConnection",
            in: .client,
            [
                "DeviceLink", "TidingsModels", "EventLoops", "TLSTransport", "WebSocketFraming",
                "HTTPMessages",
                "PushTelemetry",
            ]
        ),
        library(
            "DeviceDaemon",
            in: .client,
            [
                "BackendClient", "GatewayConnection", "HubClient", "HubAPI", "DeviceLink", "TidingsModels",
                "JSONBytes",
                "SQLiteStorage",
                "XMLBytes", "HTTPMessages", "EventLoops", "TLSTransport", "OutboundHTTP", "PushCredentials",
                "PushTelemetry", "ProcessLifecycle",
            ]
        ),
        program("tidings-device", path: "Client/Sources/tidings-device", ["DeviceDaemon"]),

        // Conformance: everything in one process.
        .target(
            name: "TidingsConformance",
            dependencies: [
                "TidingsBackend", "AppBackend", "HTTPServing", "HubCore", "PushGateway", "DeviceDaemon",
                "BackendClient", "GatewayConnection", "HubClient", "HubAPI",
                "TidingsModels", "EventLoops", "HTTPMessages", "JSONBytes", "OutboundHTTP", "PushTelemetry",
                "ProcessLifecycle", "PushCredentials", "TLSTransport", "DeviceLink", "WebSocketFraming",
            ],
            path: "ConformanceTests/Harness",
            swiftSettings: settings
        ),
        program(
            "tidings-demo",
            path: "ConformanceTests/Demo",
            [
                "TidingsConformance", "BackendClient", "DeviceDaemon", "HubClient", "TidingsModels",
                "JSONBytes", "HTTPMessages",
                "PushCredentials", "ProcessLifecycle", "DeviceLink", "WebSocketFraming",
            ]
        ),
        program(
            "tidings-crash-test",
            path: "ConformanceTests/Crash",
            [
                "TidingsConformance", "HubClient", "GatewayConnection", "DeviceLink", "DeviceDaemon",
                "TidingsModels",
                "JSONBytes", "HTTPMessages", "OutboundHTTP", "ProcessLifecycle", "PushTelemetry",
                "EventLoops", "tidings",
                "tidings-device",
            ]
        ),
        program(
            "tidings-soak-test",
            path: "ConformanceTests/Soak",
            [
                "TidingsConformance", "HubClient", "GatewayConnection", "DeviceLink", "TidingsModels",
                "JSONBytes", "HTTPMessages", "ProcessLifecycle", "WebSocketFraming", "tidings",
            ]
        ),
        tests(
            "SharedTests",
            path: "Shared/Tests/SharedTests",
            [
                "TidingsModels", "JSONBytes", "XMLBytes", "HTTPMessages", "HubAPI", "DeviceLink",
                "WebSocketFraming",
                "PushTelemetry", "EventLoops", "TLSTransport", "OutboundHTTP", "SQLiteStorage",
                "PushCredentials",
                "ProcessLifecycle", "TidingsConformance",
            ]
        ),
        tests(
            "BackendTests",
            path: "Backend/Tests/BackendTests",
            [
                "TidingsConformance", "PushTelemetry", "WebSocketFraming", "DeviceLink", "ProcessLifecycle",
                "SQLiteStorage", "HubClient",
                "HTTPServing", "AppBackend", "HubServer", "HubCore", "TagIndex", "HubStore",
                "PlatformSenders",
                "PushGateway", "TidingsBackend", "EventLoops", "TLSTransport", "HTTPMessages",
                "TidingsModels", "FuzzTargets",
                "JSONBytes", "XMLBytes", "OutboundHTTP", "PushCredentials", "HubAPI",
            ]
        ),
        tests(
            "ClientTests",
            path: "Client/Tests/ClientTests",
            [
                "BackendClient", "GatewayConnection", "DeviceDaemon", "TidingsModels", "JSONBytes",
                "DeviceLink",
            ]
        ),
        tests(
            "ConformanceTests",
            path: "ConformanceTests/Scenarios",
            [
                "TidingsConformance", "TidingsModels", "HubClient", "HubAPI", "BackendClient", "DeviceDaemon",
                "JSONBytes",
                "HTTPMessages", "HTTPServing", "HubCore", "AppBackend", "OutboundHTTP", "EventLoops",
                "TidingsBackend",
                "PushCredentials",
                "ProcessLifecycle", "PushTelemetry", "GatewayConnection", "DeviceLink", "TLSTransport",
                "PlatformSenders", "PushGateway", "tidings",
            ]
        ),
        tests(
            "RecordingTests",
            path: "ConformanceTests/Recordings",
            [
                "TidingsConformance", "TidingsModels", "TidingsBackend", "HubClient", "HubAPI", "JSONBytes",
                "XMLBytes",
                "HTTPMessages", "OutboundHTTP", "PushCredentials", "ProcessLifecycle",
            ]
        ),
    ] + fuzzing
)

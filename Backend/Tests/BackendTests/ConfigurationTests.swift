import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import SQLiteStorage
import Synchronization
import TagIndex
import Testing
import TidingsBackend
import TidingsConformance
import TidingsModels
@testable import HubCore
@testable import HubStore

@Suite("Configuration")
struct ConfigurationTests {
    @Test("flags, environment names and file keys come from one table")
    func names() throws {
        let key = try #require(ConfigurationKeys.all.first { $0.path == "backend.uploadByteCountMax" })
        #expect(key.flag == "--backend-upload-byte-count-max")
        #expect(key.variable == "TIDINGS_BACKEND_UPLOAD_BYTE_COUNT_MAX")
        var configuration = ServerConfiguration(statePath: "x")
        try ConfigurationKeys.apply(
            file: Array(
                #"{"backend":{"address":"127.0.0.1:1","sample":"rich"},"services":["hub","backend"],"dev":true}"#
                    .utf8
            ),
            to: &configuration
        )
        let rest = try ConfigurationKeys.apply(
            arguments: ["--hub-address=[::1]:2", "--gateway-address", "localhost:3", "x"],
            to: &configuration
        )
        #expect(rest == ["x"])
        #expect(configuration.backendAddress == .init(host: "127.0.0.1", port: 1))
        #expect(configuration.hubAddress == .init(host: "::1", port: 2))
        #expect(configuration.services == [.hub, .backend])
        #expect(configuration.isDevelopment)
    }

    @Test(
        "an unknown key and a bad value are errors that name them",
        arguments: [
            (#"{"backend":{"adress":"x"}}"#, "backend.adress"), (#"{"x":1}"#, "'x'"),
            (#"{"backend":{"address":"nowhere"}}"#, "nowhere"),
            (#"{"services":["web"]}"#, "web"), (#"{"hub":{"hubs":[{"name":"a","apple":{}}]}}"#, "apple"),
            ("[]", "object"), ("{", "JSON"),
        ]
    )
    func errors(file: String, named: String) {
        var configuration = ServerConfiguration(statePath: "x")
        let error = #expect(throws: ConfigurationError.self) {
            try ConfigurationKeys.apply(file: Array(file.utf8), to: &configuration)
        }
        #expect(error?.description.contains(named) == true)
    }

    @Test("row 26: dev is refused off loopback, and plain HTTP there needs its flag")
    func offLoopback() throws {
        var configuration = ServerConfiguration(statePath: "x")
        configuration.hubAddress.host = "0.0.0.0"
        #expect(throws: ConfigurationError.self) { try configuration.check() }
        configuration.allowsPlainHTTP = true
        try configuration.check()
        configuration.isDevelopment = true
        let error = #expect(throws: ConfigurationError.self) { try configuration.check() }
        #expect(error?.description.contains("dev") == true)
    }

    @Test(
        "a channel outside Microsoft's domain gets no token",
        arguments: [
            ("https://db5.notify.windows.com/?token=x", true),
            ("http://db5.notify.windows.com/?token=x", false),
            ("https://notify.windows.com.evil.net/", false),
            ("https://evilnotify.windows.com/", false), ("https://localhost:8082/wns/?token=x", true),
            ("https://localhost:8083/wns/", false),
            ("https://db5.notify.windows.com:444/", false),
        ]
    )
    func channels(text: String, isAllowed: Bool) throws {
        let token = try #require(HTTPURL("https://localhost:8082/accesstoken.srf"))
        let settings = WNSSettings(
            packageSID: "a",
            secretKey: "b",
            tokenURL: token,
            gatewayOrigins: ["https://localhost:8082"]
        )
        #expect(settings.mayReceiveToken(try #require(HTTPURL(text))) == isAllowed)
    }
}

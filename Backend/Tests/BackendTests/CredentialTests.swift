import HTTPMessages
import JSONBytes
import PlatformSenders
import ProcessLifecycle
import PushCredentials
import PushGateway
import Testing
import TidingsConformance
import TidingsModels

@testable import TidingsBackend

/// What the configuration and a hub's description say of the services that are no browser's, Apple's, Google's or Windows'.
@Suite("Credentials")
struct CredentialTests {
    private func configured(_ members: String) throws -> SenderSettings {
        var configuration = ServerConfiguration(statePath: "x")
        let file = "{\"hub\":{\"hubs\":[{\"name\":\"news\",\(members)}]}}"
        try ConfigurationKeys.apply(file: Array(file.utf8), to: &configuration)
        return try SenderSettings(try #require(configuration.hubs.first))
    }

    private func url(_ text: String) throws -> HTTPURL { try #require(HTTPURL(text)) }

    @Test("the configuration: defaults, and everything that can be named")
    func configuration() throws {
        let usual = try configured(
            #""mpns":{},"adm":{"clientId":"c","clientSecret":"s"},"baidu":{"apiKey":"a","secretKey":"s"},"xiaomi":{"appSecret":"x"}"#
        )
        #expect(usual.mpns == MPNSSettings())
        #expect(usual.adm?.tokenURL == (try url("https://api.amazon.com/auth/O2/token")))
        #expect(usual.adm?.sendsDeliveryID == false)
        #expect(usual.baidu?.endpoint == (try url("https://api.tuisong.baidu.com")))
        #expect(usual.xiaomi?.endpoint == (try url("https://api.xmpush.xiaomi.com")))
        #expect(usual.apns == nil && usual.webPush == nil)

        let own = try configured(
            #""mpns":{"gatewayOrigins":["https://push.example:8082/x"]},"#
                + #""adm":{"clientId":"c","clientSecret":"s","tokenURL":"https://push.example/auth/O2/token","sendURL":"https://push.example/{0}"},"#
                + #""baidu":{"apiKey":"a","secretKey":"s","endpoint":"https://push.example"},"#
                + #""xiaomi":{"appSecret":"x","endpoint":"https://push.example","packageName":"net.example"}"#
        )
        #expect(own.mpns?.gatewayOrigins == ["https://push.example:8082"])
        #expect(own.adm?.sendsDeliveryID == true)
        #expect(own.baidu?.endpoint == (try url("https://push.example")))
        #expect(own.xiaomi?.packageName == "net.example")
    }

    @Test(
        "a configuration that cannot be used names the hub, the platform, the key and what is allowed",
        arguments: [
            (#""mpns":{"certificate":"x"}"#, ["news", "mpns", "'certificate'", "gatewayOrigins"]),
            (#""mpns":{"gatewayOrigins":["push"]}"#, ["'gatewayOrigins'", "http"]),
            (#""mpns":{"certificateFile":"/nowhere.p12"}"#, ["mpns", "'/nowhere.p12'", "does not exist"]),
            (#""apns":{"certificatePasswordFile":"x"}"#, ["apns", "without 'certificateFile'"]),
            (#""apns":{"certificateFile":"/dev/null"}"#, ["apns", "'certificateFile' cannot be used"]),
            (#""apns":{"teamId":"t","keyFile":"f"}"#, ["apns", "'keyId' is missing"]),
            (#""adm":{"clientSecret":"s"}"#, ["news", "adm", "'clientId' is missing"]),
            (#""adm":{"clientId":"c","clientSecret":"s","tokenURL":"x"}"#, ["'tokenURL'", "http"]),
            (#""adm":{"clientId":"c","clientSecret":"s","sendURL":"https://a/b"}"#, ["'sendURL'", "{0}"]),
            (#""baidu":{"apiKey":"a"}"#, ["baidu", "'secretKey' is missing"]),
            (
                #""baidu":{"apiKey":"a","secretKey":"s","colour":1}"#,
                ["'colour'", "apiKey, endpoint, secretKey"]
            ),
            (#""xiaomi":{}"#, ["xiaomi", "'appSecret' is missing"]),
        ]
    )
    func refusals(members: String, words: [String]) {
        let error = #expect(throws: ConfigurationError.self) { try configured(members) }
        for word in words { #expect(error?.description.contains(word) == true, "\(word): \(error as Any)") }
    }

    @Test(
        "a certificate's file stands in place of a token's key, and names the topic unless the configuration does"
    )
    func certificateFile() throws {
        let folder = try Files.makeScratchFolder("tidings-credentials")
        defer { Files.removeTree(folder) }
        let named = try ClientIdentity.make(name: "n", userID: "net.example.app")
        try Files.replace(folder + "/named.pem", with: named.pem)
        let file = "\"certificateFile\":\"\(folder)/named.pem\""
        let apns = try #require(try configured("\"apns\":{\(file)}").apns)
        #expect(apns.credential == .certificate(named) && apns.topic == nil)
        #expect(try configured("\"apns\":{\(file),\"bundleId\":\"b\"}").apns?.topic == "b")
        #expect(try configured("\"mpns\":{\(file)}").mpns == MPNSSettings(identity: named))
        let error = #expect(throws: ConfigurationError.self) {
            try configured("\"apns\":{\(file),\"keyId\":\"k\"}")
        }
        #expect(error?.description.contains("exclude each other") == true)
    }

    @Test("a hub's description: the original's properties and defaults")
    func description() throws {
        let settings = try SenderSettings(
            HubDescription(
                name: "news",
                credentials: [
                    .mpns: [:], .adm: ["ClientId": "c", "ClientSecret": "s"],
                    .baidu: [
                        "BaiduApiKey": "a", "BaiduSecretKey": "s",
                        // The original's own, of REST 2.0.
                        "BaiduEndPoint": "https://channel.api.duapp.com/rest/2.0/channel/channel",
                    ], .xiaomi: ["AppSecret": "x", "Endpoint": "https://api.xmpush.global.xiaomi.com"],
                ]
            )
        )
        #expect(settings.mpns == MPNSSettings())
        #expect(settings.adm?.clientID == "c" && settings.adm?.sendsDeliveryID == false)
        #expect(settings.baidu?.endpoint == (try url("https://api.tuisong.baidu.com")))
        #expect(settings.xiaomi?.endpoint == (try url("https://api.xmpush.global.xiaomi.com")))
        let none = try SenderSettings(HubDescription(name: "news"))
        #expect(
            none.apns == nil && none.mpns == nil && none.adm == nil && none.baidu == nil && none.xiaomi == nil
        )
        for (name, platform) in [("MpnsCertificate", Platform.mpns), ("ApnsCertificate", .apns)] {
            let identity = try ClientIdentity.make(name: "n", userID: "net.example.app")
            let described = try SenderSettings(
                HubDescription(name: "news", credentials: [platform: [name: Base64.encode(identity.pem)]])
            )
            if platform == .mpns {
                #expect(described.mpns == MPNSSettings(identity: identity))
            } else {
                #expect(described.apns?.credential == .certificate(identity) && described.apns?.topic == nil)
            }
            let error = #expect(throws: ConfigurationError.self) {
                try SenderSettings(HubDescription(name: "news", credentials: [platform: [name: "x"]]))
            }
            #expect(error?.description.contains(name) == true)
        }
        let entra = "https://login.microsoftonline.com/contoso/oauth2/v2.0/token"
        for (endpoint, scope) in [
            (entra, "https://wns.windows.com/.default"),
            ("https://login.live.com/accesstoken.srf", "notify.windows.com"),
        ] {
            let wns = try SenderSettings(
                HubDescription(
                    name: "news",
                    credentials: [
                        .wns: ["PackageSid": "id", "SecretKey": "s", "WindowsLiveEndpoint": endpoint]
                    ]
                )
            ).wns
            // Microsoft's own service makes no gateway of ours.
            #expect(wns?.scope == scope && wns?.gatewayOrigins == [] && wns?.sendsDeliveryID == false)
        }
        for bad in ["https://a.example/x", "https://{0}.example/"] {
            let adm = ["ClientId": "c", "ClientSecret": "s", "SendUrlTemplate": bad]
            let error = #expect(throws: ConfigurationError.self) {
                try SenderSettings(HubDescription(name: "news", credentials: [.adm: adm]))
            }
            #expect(error?.description.contains("SendUrlTemplate") == true)
        }
    }

    @Test("a gateway's file from before there was ADM gets its credentials, and keeps the others")
    func earlierFile() throws {
        let made = try GatewayCredentials.make()
        var object = try #require(try made.json().objectValue)
        #expect(try GatewayCredentials(.object(object))?.adm.clientSecret == made.adm.clientSecret)
        object["adm"] = nil
        let read = try #require(try GatewayCredentials(.object(object)))
        #expect(read.wns.secretKey == made.wns.secretKey && read.tokenKey == made.tokenKey)
        #expect(read.adm.clientSecret != made.adm.clientSecret && read.adm.clientSecret.utf8.count == 64)
    }
}

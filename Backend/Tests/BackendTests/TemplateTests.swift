import JSONBytes
import TidingsModels
import Testing
import XMLBytes

@testable import HubCore

@Suite("The template language")
struct TemplateTests {
    private func render(
        _ expression: String,
        _ values: [String: String] = ["p": "Hello", "n": "42", "q": "a&b <ü>"]
    ) throws -> String {
        let template = RegistrationTemplate(body: "{\"x\":\(JSONValue.string(expression).text)}")
        let compiled = try CompiledTemplate(template, platform: .gcm)
        let json = try JSONValue(parsing: compiled.render(values).body)
        return json["x"]?.stringValue ?? "#" + (json["x"]?.text ?? "")
    }

    @Test(
        "expressions and literals",
        arguments: [
            ("$(p)", "Hello"), ("$(P)", "Hello"), ("$( p )", "Hello"), ("$(p, 3)", "Hel"), ("$(p,0)", ""),
            ("$(missing)", ""), (".(p, 4)", "H..."),
            (".(p, 5)", "Hello"), (".(p, 2)", ".."), (".(p,0)", ""), ("%(q)", "a%26b%20%3C%C3%BC%3E"),
            ("#(n)", "#42"), ("#(p)", "Hello"), ("#(missing)", ""),
            ("{$(p) + ' & ' + $(n)}", "Hello & 42"), ("{'it''s ' + \"\"\"q\"\"\"}", "it's \"q\""),
            ("$(p) + '!'", "Hello!"), ("$(x:{none})", "none"),
            ("$(x:{a\\}b}, 2)", "a}"), ("{#(n)}", "42"), ("{'#1 hit'}", "#1 hit"), ("Hi $(p)", "Hi $(p)"),
            (" $(p)", " $(p)"), ("plain", "plain"), ("", ""),
            ("$(p:{x}, 2)", "He"),
        ]
    )
    func values(expression: String, result: String) throws { #expect(try render(expression) == result) }

    @Test(
        "what is not an expression is an error that quotes it",
        arguments: [
            "$p", "$(p", "$()", "$(a b)", "$(p, x)", "$(p, -1)", ".(p)", "%(p, 3)", "#(p, 3)", "{$(p)",
            "{$(p) 'x'}", "{$(p) +}", "{}", "{#(n) + 'x'}", "$body",
            "#1 hit", "...more", "'", "{'open}", "$(x:{open)", "$(\(String(repeating: "x", count: 121)))",
            "{x}",
        ].filter { $0 != "'" }
    )
    func errors(expression: String) {
        let error = #expect(throws: HubError.self) { try render(expression) }
        #expect(error?.code == .badRequest)
        #expect(error?.message.contains(expression) == true)
    }

    @Test("expressions are found at any depth and never in keys; numbers keep their text")
    func json() throws {
        let body =
            ##"{"aps":{"alert":{"body":"{$(t) + '!'}"},"badge":"#(b)"},"$(k)":["$(t)",1.50,null,true]}"##
        let compiled = try CompiledTemplate(RegistrationTemplate(body: body), platform: .apns)
        let text = String(decoding: compiled.render(["t": "q\"\n", "b": "7"]).body, as: UTF8.self)
        #expect(text == ##"{"aps":{"alert":{"body":"q\"\n!"},"badge":7},"$(k)":["q\"\n",1.50,null,true]}"##)
    }

    @Test("XML: attributes and leaf texts; the rest stays byte for byte, but for a declaration")
    func xml() throws {
        let body =
            "<?xml version='1.0' encoding='utf-16'?><!-- $(t) --><toast launch=\"$(t)\" a='x'>  <visual>$(t)<binding><text id=\"1\">$(t)</text><text><![CDATA[{'<' + $(t)}]]></text><text>a $(t)</text><image/></binding></visual></toast>"
        let compiled = try CompiledTemplate(
            RegistrationTemplate(body: body, headers: [.init("X-WNS-Type", "wns/toast")]),
            platform: .wns
        )
        let text = String(decoding: compiled.render(["t": "<&\"'>"]).body, as: UTF8.self)
        #expect(
            text
                == "<!-- $(t) --><toast launch=\"&lt;&amp;&quot;'&gt;\" a='x'>  <visual>$(t)<binding><text id=\"1\">&lt;&amp;&quot;'&gt;</text><text>&lt;&lt;&amp;&quot;'&gt;</text><text>a $(t)</text><image/></binding></visual></toast>"
        )
    }

    @Test("headers and expiry are rendered; line ends cannot enter")
    func headers() throws {
        let template = RegistrationTemplate(
            body: "{}",
            headers: [.init("apns-collapse-id", "$(topic)"), .init("apns-x", "$(missing)")],
            expiry: "$(when)",
            priority: "5"
        )
        let rendered = try CompiledTemplate(template, platform: .apns).render([
            "topic": "a\r\nEvil: 1", "when": "2030-01-01T00:00:00Z",
        ])
        #expect(
            rendered.headers == [
                .init("apns-collapse-id", "aEvil: 1"), .init("apns-expiration", "1893456000"),
                .init("apns-priority", "5"),
            ]
        )
    }

    @Test(
        "an error of an expression tells line and column in the body, and how to write the text as it is",
        arguments: [
            (
                Platform.apns, "{\n  \"aps\": {\"alert\": \"#1 hit's\"}\n}", "line 2, column 20",
                "{'#1 hit''s'}"
            ),
            (.apns, "{\"$(x\":1,\"a\":\"$(x\"}", "line 1, column 14", "{'$(x'}"),
            (.wns, "<toast>\n<a b=\"...more\"/></toast>", "line 2, column 7", "{'...more'}"),
        ]
    )
    func positions(platform: Platform, body: String, place: String, escaped: String) {
        let template = RegistrationTemplate(
            body: body,
            headers: platform == .wns ? [.init("X-WNS-Type", "wns/toast")] : []
        )
        let error = #expect(throws: HubError.self) { try CompiledTemplate(template, platform: platform) }
        #expect(
            error?.message.contains(place) == true && error?.message.contains(escaped) == true,
            "\(error?.message ?? "")"
        )
    }

    @Test(
        "what a platform demands",
        arguments: [
            (Platform.wns, RegistrationTemplate(body: "<toast/>"), "X-WNS-Type"),
            (.wns, RegistrationTemplate(body: "<x/>", headers: [.init("X-WNS-Type", "wns/toast")]), "root"),
            (.wns, RegistrationTemplate(body: "<toast/>", headers: [.init("X-WNS-Type", "")]), "empty"),
            (
                .wns, RegistrationTemplate(body: "<toast/>", headers: [.init("X-WNS-Type", "a\r\nb")]),
                "control"
            ),
            (
                .wns,
                RegistrationTemplate(
                    body: "<toast/>",
                    headers: [.init("X Y", "a"), .init("X-WNS-Type", "wns/toast")]
                ), "header name"
            ),
            (.wns, RegistrationTemplate(body: "<toast", headers: [.init("X-WNS-Type", "wns/toast")]), "XML"),
            (.mpns, RegistrationTemplate(body: "<toast/>"), "Notification"),
            (.apns, RegistrationTemplate(body: "[1]"), "object"),
            (.apns, RegistrationTemplate(body: "{"), "JSON"),
            (.apns, RegistrationTemplate(body: "{}", headers: [.init("x", "1")]), "apns-"),
            (
                .apns, RegistrationTemplate(body: "{}", headers: [.init("apns-priority", "x")]),
                "apns-priority"
            ),
            (.apns, RegistrationTemplate(body: "{}", expiry: "soon"), "Expiry"),
            (.apns, RegistrationTemplate(body: "{}", priority: "high"), "Priority"),
            (.apns, RegistrationTemplate(body: "{}", expiry: "01/01/9000000000000000000 00:00:00"), "Expiry"),
            (.fcmV1, RegistrationTemplate(body: "{\"data\":{}}"), "message"),
            (.gcm, RegistrationTemplate(name: String(repeating: "n", count: 201), body: "{}"), "200"),
        ]
    )
    func platformRules(platform: Platform, template: RegistrationTemplate, named: String) {
        let error = #expect(throws: HubError.self) { try CompiledTemplate(template, platform: platform) }
        #expect(error?.message.contains(named) == true, "\(error?.message ?? "")")
    }

    @Test("any value in any place gives a payload that parses and holds the value")
    func property() throws {
        var random = SystemRandomNumberGenerator()
        let json = try CompiledTemplate(RegistrationTemplate(body: #"{"a":{"b":["$(v)"]}}"#), platform: .gcm)
        let xml = try CompiledTemplate(
            RegistrationTemplate(
                body: "<toast a=\"$(v)\"><t>$(v)</t></toast>",
                headers: [.init("X-WNS-Type", "wns/toast")]
            ),
            platform: .wns
        )
        for _ in 0..<500 {
            let scalars = (0..<Int.random(in: 0..<20, using: &random)).compactMap { _ in
                Unicode.Scalar(
                    UInt32.random(in: 0..<(Bool.random(using: &random) ? 0x80 : 0x11_0000), using: &random)
                )
            }
            let value = String(String.UnicodeScalarView(scalars))
            let parsed = try JSONValue(parsing: json.render(["v": value]).body)
            #expect(parsed["a"]?["b"]?.arrayValue?.first?.stringValue == value)
            let element = try XMLElement(parsing: xml.render(["v": value]).body)
            if XMLText.isAllowed(value) {
                #expect(element.attributes[.init("a")] == value)
                #expect(element.first("t")?.text == value)
            }
        }
    }
}

@Suite("Payloads for the platforms")
struct PayloadTests {
    @Test(
        "APNs: the push type is inferred, and silent pushes get priority 5",
        arguments: [
            (#"{"aps":{"alert":"x"}}"#, "alert", nil),
            (#"{"aps":{"content-available":1}}"#, "background", "5"),
            (#"{"aps":{"content-available":1,"sound":""}}"#, "background", "5"),
            (#"{"aps":{"content-available":1,"sound":"x"}}"#, "alert", nil),
            (#"{"x":1}"#, "alert", nil as String?),
        ]
    )
    func apple(body: String, type: String, priority: String?) throws {
        let payload = try PayloadRules.payload(
            Array(body.utf8),
            headers: [.init("X-WNS-Type", "wns/toast")],
            platform: .apns
        )
        #expect(payload.header("apns-push-type") == type)
        #expect(payload.header("apns-priority") == priority)
        #expect(payload.header("X-WNS-Type") == nil)
    }

    @Test("an explicit background push gets its priority too")
    func explicitBackground() throws {
        let payload = try PayloadRules.payload(
            Array("{}".utf8),
            headers: [.init("APNS-Push-Type", "background")],
            platform: .apns
        )
        #expect(payload.header("apns-priority") == "5")
    }

    @Test("legacy Google payloads become FCM v1 when there are no legacy credentials")
    func google() throws {
        let legacy =
            #"{"data":{"a":1,"b":true,"c":"x"},"notification":{"title":"T","icon":"i"},"priority":"high","time_to_live":60,"collapse_key":"k"}"#
        let payload = try PayloadRules.payload(Array(legacy.utf8), headers: [], platform: .gcm)
        #expect(payload.platform == .fcmV1)
        var body = payload.body
        body.insert(contentsOf: Array("\"TOKEN\"".utf8), at: try #require(payload.tokenOffset))
        let message = try #require(try JSONValue(parsing: body)["message"])
        #expect(message["token"] == "TOKEN")
        #expect(message["data"] == .object(["a": "1", "b": "true", "c": "x"]))
        #expect(
            message["android"]
                == .object([
                    "notification": .object(["icon": "i"]), "collapse_key": "k", "priority": "high",
                    "ttl": "60s",
                ])
        )
        #expect(
            try PayloadRules.payload(
                Array(legacy.utf8),
                headers: [],
                platform: .gcm,
                hasLegacyCredentials: true
            ).platform == .gcm
        )
    }

    @Test("Windows: the type is derived, the declaration dropped, raw bytes kept")
    func windows() throws {
        let toast = try PayloadRules.payload(
            Array("<?xml version='1.0' encoding='utf-16'?>\n<Toast/>".utf8),
            headers: [],
            platform: .wns
        )
        #expect(toast.header("X-WNS-Type") == "wns/toast")
        #expect(toast.header("Content-Type") == "text/xml")
        #expect(toast.body == Array("<Toast/>".utf8))
        let raw = try PayloadRules.payload([1, 2], headers: [.init("X-WNS-Type", "wns/raw")], platform: .wns)
        #expect(raw.header("Content-Type") == "application/octet-stream")
        #expect(throws: PayloadRefusal.self) {
            try PayloadRules.payload([1, 2], headers: [], platform: .wns)
        }
    }

    @Test(
        "one byte over the limit is InvalidNotificationSize",
        arguments: [(Platform.apns, 4096), (.wns, 5000)]
    )
    func sizes(platform: Platform, limit: Int) throws {
        let empty = platform == .apns ? #"{"a":""}"# : "<toast></toast>"
        let fill = String(repeating: "x", count: limit - empty.utf8.count)
        let full = platform == .apns ? "{\"a\":\"\(fill)\"}" : "<toast>\(fill)</toast>"
        #expect(
            try PayloadRules.payload(Array(full.utf8), headers: [], platform: platform).body.count == limit
        )
        let over = platform == .apns ? "{\"a\":\"\(fill)x\"}" : "<toast>\(fill)x</toast>"
        let refusal = #expect(throws: PayloadRefusal.self) {
            try PayloadRules.payload(Array(over.utf8), headers: [], platform: platform)
        }
        #expect(refusal?.outcome == .invalidNotificationSize)
    }
}

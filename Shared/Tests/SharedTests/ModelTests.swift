import HTTPMessages
import HubAPI
import JSONBytes
import PushCredentials
import TidingsModels
import Testing

@Suite("Timestamps")
struct TimestampTests {
    @Test(
        "the forms that clients send",
        arguments: [
            ("2030-01-02T10:20:30Z", "2030-01-02T10:20:30.000Z"),
            ("2030-01-02T10:20:30.1234567Z", "2030-01-02T10:20:30.123Z"),
            ("2030-01-02T10:20+0200", "2030-01-02T08:20:00.000Z"),
            ("2030-01-02T10:20:30+00:00", "2030-01-02T10:20:30.000Z"),
            ("2030-01-02T10:20:30", "2030-01-02T10:20:30.000Z"),
            ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000Z"),
            ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ]
    )
    func forms(text: String, shown: String) { #expect(Timestamp(parsing: text)?.description == shown) }

    @Test(
        "dates that do not exist",
        arguments: [
            "2023-02-29T00:00:00Z", "2030-13-01T00:00:00Z", "2030-01-02", "x", "2030-01-02T25:00:00Z",
            "2030-01-02T10:20:30+99:00",
        ]
    )
    func none(text: String) { #expect(Timestamp(parsing: text) == nil) }

    @Test("the American and the HTTP form")
    func others() throws {
        let time = try #require(Timestamp(parsing: "2027-03-14T09:26:53Z"))
        #expect(time.american == "3/14/2027 9:26:53 AM")
        #expect(time.httpDate == "Sun, 14 Mar 2027 09:26:53 GMT")
        #expect(time.compact == "20270314092653")
        #expect(Timestamp.never.description == "9999-12-31T23:59:59.999Z")
    }

    @Test("a year far out of range is refused, not computed")
    func absurdYear() {
        #expect(
            Timestamp(year: 9_000_000_000_000_000_000, month: 1, day: 1, hour: 0, minute: 0, second: 0) == nil
        )
        #expect(Timestamp(year: 2030, month: 1, day: 1, hour: -1, minute: 0, second: 0) == nil)
    }
}

@Suite("Tags and tag expressions")
struct TagTests {
    private func matches(_ expression: String, _ tags: String...) throws -> Bool {
        try TagExpression(parsing: expression).matches(Set(tags.map(HubTag.init(unchecked:))))
    }

    @Test("! binds tighter than &&, && tighter than ||")
    func precedence() throws {
        #expect(try matches("a||b&&c", "a"))
        #expect(try !matches("(a||b)&&c", "a"))
        #expect(try matches("!a&&b", "b"))
        #expect(try !matches("!(a||b)", "b"))
        #expect(try matches("!!a", "a"))
        #expect(try matches(" World && ! Politics ", "world"))
        #expect(try matches("$UserId:{bob=1} && x", "$userid:{BOB=1}", "X"))
    }

    @Test(
        "syntax errors name the position",
        arguments: [
            "", "a b", "a &&", "|| a", "(a", "a)", "a & b", "a,b", "$Foo:{x}", "$UserId:{}", "!", "é",
        ]
    )
    func errors(text: String) {
        let error = #expect(throws: HubError.self) { try TagExpression(parsing: text) }
        #expect(error?.code == .badRequest)
        #expect(error?.message.contains("character") == true, "\(error?.message ?? "")")
    }

    @Test("limits: count, nesting, length")
    func limits() {
        var limits = TagExpressionLimits()
        (limits.tagCountMaxOnlyOr, limits.tagCountMax) = (20, 6)
        let ors = (0..<21).map { "t\($0)" }.joined(separator: "||")
        #expect(throws: HubError.self) { try TagExpression(parsing: ors, limits: limits) }
        #expect(throws: HubError.self) { try TagExpression(parsing: "a&&b&&c&&d&&e&&f&&g", limits: limits) }
        #expect((try? TagExpression(parsing: "a&&b&&c&&d&&e&&f", limits: limits)) != nil)
        #expect(throws: HubError.self) {
            try TagExpression(parsing: String(repeating: "!", count: 5000) + "a")
        }
    }

    @Test(
        "a tag has 1 to 120 characters of the legal ones and no $",
        arguments: ["", "a b", "é", "$x", "a,b", String(repeating: "x", count: 121)]
    )
    func illegalTags(text: String) { #expect(throws: HubError.self) { try HubTag(text) } }

    @Test("lists trim blanks, drop repeats without case, and keep the spelling")
    func lists() throws {
        #expect(
            try HubTag.list(" World, sports ,WORLD,,a:b@c#d._-").map(\.text) == [
                "World", "sports", "a:b@c#d._-",
            ]
        )
    }
}

@Suite("Shared access signatures")
struct SignatureTests {
    private let key = "b3JjaGFyZC1rZXktMDEyMzQ1Njc4OWFiY2RlZmdoaWo="

    @Test(
        "the vectors of the protocol reference, section 2.7",
        arguments: [
            (
                "http%3a%2f%2forchard.push.example.net%2fgarden%2fmessages%2f",
                "dWPcKCc7+2gsn2OmskyLu3dcdJWu119PME5gBILf/Ug="
            ),
            (
                "https%3a%2f%2forchard.push.example.net%2fgarden%2fmessages%3fapi-version%3d2020-06",
                "AhtygYdRD9/vOmCtJ8rDMWYwY2VVrLubizCLeCFfJZ8="
            ),
            ("https%3A%2F%2Forchard.push.example.net%2F", "ANSXh2WiSTfhbxVWddIpyeJq0dZ9n0cQiNMlugzeUMQ="),
            (
                "http%3a%2f%2forchard.push.example.net%2fgarden%2fregistrationids%2f%3fapi-version%3d2013-04",
                "mtBeGTge89gMVRFpkibLonlfvlrbwJRtfwVbLjGRH+w="
            ),
        ]
    )
    func vectors(resource: String, signature: String) throws {
        for sent in [
            signature, PercentEncoding.encode(signature),
            PercentEncoding.encode(signature, lowerCaseHex: true),
        ] {
            for header in [
                "SharedAccessSignature sr=\(resource)&sig=\(sent)&se=1804500000&skn=Full",
                "sharedaccesssignature sig=\(sent)&se=1804500000&skn=Full&sr=\(resource)",
            ] {
                let token = try SharedAccessSignature(parsing: header)
                #expect(token.isSigned(with: key))
                #expect(!token.isSigned(with: key + "x"))
                #expect(token.audience?.host == "orchard.push.example.net")
            }
        }
    }

    @Test("our own tokens verify, cover their path, and compare without case, port and query")
    func own() throws {
        let header = SharedAccessSignature.make(
            resource: "https://Localhost:8081/Hub/tags/username%3Aalice/registrations?x=1",
            keyName: "a b",
            key: "k",
            expires: Timestamp(seconds: 99)
        )
        let token = try SharedAccessSignature(parsing: header)
        #expect(token.isSigned(with: "k"))
        #expect(token.keyName == "a b")
        #expect(token.expiry == 99)
        #expect(token.audience?.host == "localhost")
        #expect(token.audience?.path == ["hub", "tags", "username:alice", "registrations"])
    }

    @Test("a hand-written client that signs the decoded resource is taken")
    func decodedResource() throws {
        let text = "https://h/hub\n99"
        let signature = Base64.encode(Digests.hmacSHA256(key: Array("k".utf8), Array(text.utf8)))
        let token = try SharedAccessSignature(
            parsing:
                "SharedAccessSignature sr=https%3A%2F%2Fh%2Fhub&sig=\(PercentEncoding.encode(signature))&se=99&skn=a"
        )
        #expect(token.isSigned(with: "k"))
    }

    @Test(
        "malformed tokens name the part",
        arguments: [
            ("Bearer x", "scheme"), ("SharedAccessSignature sr=a&se=1&skn=x", "sig"),
            ("SharedAccessSignature sr=a&sig=!&se=1&skn=x", "base64"),
            ("SharedAccessSignature sr=a&sig=AAAA&se=x&skn=x", "se"),
            ("SharedAccessSignature sr=a&sig=AAAA&se=-9223372036854775808&skn=x", "se"),
            ("SharedAccessSignature sig=AAAA&se=1&skn=x", "sr"), ("SharedAccessSignature sr", "value"),
        ]
    )
    func malformed(header: String, part: String) {
        let error = #expect(throws: HubError.self) { try SharedAccessSignature(parsing: header) }
        #expect(error?.code == .unauthorized)
        #expect(error?.message.contains(part) == true)
    }
}

@Suite("Registrations as Atom")
struct RegistrationXMLTests {
    private func entry(_ description: String, content: String = "application/xml") -> [UInt8] {
        Array(
            "<?xml version=\"1.0\" encoding=\"utf-16\"?><entry xmlns=\"http://www.w3.org/2005/Atom\"><id/><updated>x</updated><content type=\"\(content)\">\(description)</content></entry>"
                .utf8
        )
    }
    private let connect =
        "xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\" xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\""

    @Test("both forms of the root, any order, nil and unknown elements")
    func variants() throws {
        let forms = [
            "<AppleRegistrationDescription \(connect)><Tags> a , b</Tags><DeviceToken>ab12</DeviceToken></AppleRegistrationDescription>",
            "<RegistrationDescription i:type=\"AppleRegistrationDescription\" \(connect)><DeviceToken>AB12</DeviceToken><Unknown/><RegistrationId i:nil=\"true\"/><Tags>a,b</Tags><ExpirationTime>2030-01-01T00:00:00Z</ExpirationTime></RegistrationDescription>",
            "<RegistrationDescription xmlns:p=\"x\" i:type=\"p:AppleRegistrationDescription\" \(connect)>\n  <Tags>a,b</Tags>\n  <DeviceToken>AB12</DeviceToken></RegistrationDescription>",
        ]
        for form in forms {
            let request = try RegistrationXML.readRequest(entry(form, content: "text/xml"))
            #expect(request.id == nil)
            #expect(
                request.content
                    == RegistrationContent(
                        handle: try PlatformHandle("AB12", platform: .apns),
                        tags: [try HubTag("a"), try HubTag("b")]
                    )
            )
        }
    }

    @Test("a registration is written and read back", arguments: Platform.allCases)
    func roundTrip(platform: Platform) throws {
        let texts: [Platform: String] = [
            .apns: "AB12", .wns: "https://a.notify.windows.com/?token=x%2F&y=%3C",
            .mpns: "http://s.notify.live.net/u/1/x", .baidu: "12-3-4", .browser: "https://push.example/s/1",
        ]
        let keys = platform == .browser ? SubscriptionKeys(p256dh: "BPk", auth: "x_-") : nil
        let handle = try PlatformHandle(texts[platform] ?? "tok:en", platform: platform, keys: keys)
        let content = RegistrationContent(
            handle: handle,
            tags: [try HubTag("x")],
            pushVariables: ["nick": "P\"o"],
            template: RegistrationTemplate(
                name: "n<",
                body: "{\"a\":\"]]>$(b)\"}",
                headers: [.apns, .wns, .mpns].contains(platform) ? [.init("apns-x", "1")] : [],
                expiry: platform == .apns ? "0" : nil
            )
        )
        let registration = Registration(
            id: try #require(RegistrationID("1-2-3")),
            etag: 4,
            expires: .never,
            updated: Timestamp(seconds: 0),
            content: content
        )
        let text = RegistrationXML.entry(
            registration,
            url: "https://h/hub/registrations/1-2-3?api-version=1&x=2"
        )
        #expect(text.hasPrefix("<entry a:etag=\"W/&quot;4&quot;\" xmlns=\"http://www.w3.org/2005/Atom\""))
        #expect(!text.contains("> <") && !text.contains("\n"))
        #expect(try RegistrationXML.readEntry(Array(text.utf8)) == registration)
        let request = try RegistrationXML.readRequest(
            Array(RegistrationXML.request(content, id: registration.id).utf8)
        )
        #expect(request.id == "1-2-3")
        #expect(request.content == content)
    }

    @Test(
        "what is missing or unknown is named",
        arguments: [
            ("<BaiduXRegistrationDescription/>", "BaiduX"),
            ("<AppleRegistrationDescription/>", "DeviceToken"),
            (
                "<AppleTemplateRegistrationDescription><DeviceToken>AB</DeviceToken></AppleTemplateRegistrationDescription>",
                "BodyTemplate"
            ),
            (
                "<AppleRegistrationDescription><DeviceToken>XYZ</DeviceToken></AppleRegistrationDescription>",
                "hexadecimal"
            ),
            ("", "content"),
        ]
    )
    func refused(description: String, named: String) {
        let error = #expect(throws: HubError.self) { try RegistrationXML.readRequest(entry(description)) }
        #expect(error?.code == .badRequest)
        #expect(error?.message.contains(named) == true)
    }

    @Test("a feed from a hub with system tags and unknown platforms is read")
    func foreignFeed() throws {
        let text =
            "<feed xmlns=\"http://www.w3.org/2005/Atom\"><entry><content><AppleRegistrationDescription \(connect)><ETag>1</ETag><RegistrationId>1-1-1</RegistrationId><Tags>$InstallationId:{x},a</Tags><DeviceToken>AB</DeviceToken></AppleRegistrationDescription></content></entry><entry><content><NokiaXRegistrationDescription/></content></entry></feed>"
        let found = try RegistrationXML.readFeed(Array(text.utf8))
        #expect(found.map(\.id.text) == ["1-1-1"])
        #expect(found.first?.content.tags.map(\.text) == ["$InstallationId:{x}", "a"])
    }
}

@Suite("Keys, tokens and passwords")
struct CredentialTests {
    @Test("a token verifies with its key alone", arguments: [SigningKey.Algorithm.es256, .rs256])
    func tokens(algorithm: SigningKey.Algorithm) throws {
        let key = try SigningKey.generate(algorithm)
        let reread = try SigningKey.privateKey(try key.privateKeyPEM())
        let body = try key.privateKeyPEM().split(separator: "\n").filter { !$0.hasPrefix("---") }.joined()
        let bare = try SigningKey.privateKey(body)
        let text = try WebToken.sign(
            header: JSONObject(["alg": .string(algorithm.rawValue)]),
            claims: JSONObject(["iat": 5]),
            with: reread
        )
        let token = try #require(WebToken(text))
        #expect(token.isSigned(by: key) && token.isSigned(by: bare))
        #expect(token.isSigned(by: try SigningKey.publicKey(try key.publicKeyPEM())))
        #expect(!token.isSigned(by: try SigningKey.generate(algorithm)))
        #expect(token.seconds("iat") == 5)
        // Another character in the middle of the signature: always another signature.
        let middle = text.index(text.endIndex, offsetBy: -40)
        let other: Character = text[middle] == "A" ? "B" : "A"
        let forged = text[..<middle] + String(other) + text[text.index(after: middle)...]
        #expect(WebToken(String(forged)).map { $0.isSigned(by: key) } != true)
    }

    @Test("iat may be an integer, a float or a string", arguments: ["5", "5.7", "\"5\""])
    func issuedAt(value: String) throws {
        let claims = Base64.encodeURL(Array("{\"iat\":\(value)}".utf8))
        #expect(WebToken("e30.\(claims).AA")?.seconds("iat") == 5)
    }

    @Test("a password verifies against its own hash alone")
    func passwords() throws {
        let hash = try PasswordHash.make("p:ä$s")
        #expect(PasswordHash.verify("p:ä$s", hash))
        #expect(!PasswordHash.verify("p:ä$", hash))
        #expect(!PasswordHash.verify("p:ä$s", "scrypt$1$2$3"))
        #expect(try PasswordHash.make("p:ä$s") != hash)
    }
}

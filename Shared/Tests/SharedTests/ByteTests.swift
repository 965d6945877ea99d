import Foundation
import HTTPMessages
import JSONBytes
import Testing
import XMLBytes

@Suite("Searches in bytes")
struct SearchTests {
    @Test("the first :// decides, and what only looks like it is passed over")
    func scheme() {
        for (text, scheme, rest) in [
            ("https://a/b://c", "https", "a/b://c"), ("a:b:/c://d", "a:b:/c", "d"), ("://", "", ""),
            ("é://ü", "é", "ü"),
        ] {
            let parts = text.aroundScheme
            #expect(parts?.scheme == scheme[...] && parts?.rest == rest[...], "\(text)")
        }
        for text in ["", ":", ":/", "a:/", "a:/b/", "https:/a/"] { #expect(text.aroundScheme == nil) }
    }

    @Test("a word is found wherever it stands, also behind its own beginning")
    func words() {
        for text in ["needle", "xneedle", "needlex", "nneedle", "neneedle", "need needle"] {
            #expect(Array(text.utf8).holds("needle"), "\(text)")
        }
        for text in ["", "n", "needl", "needl needl", "eedle"] {
            #expect(!Array(text.utf8).holds("needle"), "\(text)")
        }
        #expect([UInt8]().holds(""))
    }
}

@Suite("JSON over bytes")
struct JSONTests {
    @Test(
        "a value is written as it was read",
        arguments: [
            "null", "true", "-0.5e+10", "12345678901234567890.123", "\"a\\\"b\\\\\"", "[]", "[1,[2,{}]]",
            #"{"a":1,"b":{"c":[null]}}"#, "\"👩‍👧\"",
        ]
    )
    func roundTrip(text: String) throws { #expect(try JSONValue(parsing: Array(text.utf8)).text == text) }

    @Test("escapes are resolved")
    func escapes() throws {
        #expect(try JSONValue(parsing: Array(#""\u0041\n\/\ud83d\ude00""#.utf8)) == .string("A\n/😀"))
    }

    @Test(
        "what the grammar forbids is refused with its position",
        arguments: [
            ("", 1), ("01", 2), ("+1", 1), ("1.", 3), (".5", 1), ("[1,]", 4), ("{\"a\":1,}", 8), ("{a:1}", 2),
            ("'x'", 1), ("\"\u{9}\"", 2),
            ("nul", 1), ("[1 2]", 4), ("{\"a\":1 \"b\":2}", 8), ("{\"a\":1,\"a\":2}", 8), ("\"\\x\"", 3),
            ("\"\\ud800x\"", 8), ("1 2", 3), ("\"open", 6),
            ("\u{FEFF}1", 1),
        ]
    )
    func refused(text: String, column: Int) {
        let error = #expect(throws: JSONError.self) { try JSONValue(parsing: Array(text.utf8)) }
        #expect(error?.column == column, "\(text): \(error?.description ?? "")")
    }

    @Test("bytes that are not UTF-8 and deep nesting are refused")
    func limits() {
        #expect(throws: JSONError.self) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
        #expect(throws: JSONError.self) {
            try JSONValue(parsing: Array(String(repeating: "[", count: 100_000).utf8))
        }
    }

    @Test("a position names the line")
    func position() {
        let error = #expect(throws: JSONError.self) { try JSONValue(parsing: Array("{\n  \"a\": x\n}".utf8)) }
        #expect(error?.line == 2)
        #expect(error?.column == 8)
    }
}

@Suite("XML over bytes")
struct XMLTests {
    @Test("namespaces, attributes, entities and CDATA")
    func reads() throws {
        let element = try XMLElement(
            parsing: Array("<a xmlns='u' xmlns:p='v' p:x='1'>t&amp;<b><![CDATA[<&]]></b>\n</a>".utf8)
        )
        #expect(element.name == .init("a", in: "u"))
        #expect(element.attributes[.init("x", in: "v")] == "1")
        #expect(element.first("b")?.text == "<&")
        #expect(element.text == "t&\n")
    }

    @Test("utf-16 declared over UTF-8 bytes is UTF-8")
    func wrongEncoding() throws {
        #expect(
            try XMLElement(parsing: Array("<?xml version=\"1.0\" encoding=\"utf-16\"?><a>å</a>".utf8)).text
                == "å"
        )
    }

    @Test(
        "document types, open elements and deep nesting are refused",
        arguments: [
            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "<a>", "<a></b>", "", "text",
            String(repeating: "<a>", count: 5000),
        ]
    )
    func refused(text: String) {
        #expect(throws: XMLError.self) { try XMLElement(parsing: Array(text.utf8)) }
    }

    @Test("many lines cost linear time: every piece is kept")
    func manyLines() throws {
        let text = String(repeating: "x\n", count: 50_000)
        #expect(try XMLElement(parsing: Array("<a>\(text)</a>".utf8)).text == text)
    }

    @Test("a CDATA section splits what would end it", arguments: ["a]]>b", "]]>]]>", "]]", "plain"])
    func cdata(text: String) throws {
        #expect(try XMLElement(parsing: Array("<a>\(XMLText.cdata(text))</a>".utf8)).text == text)
    }

    @Test("escaped text comes back", arguments: ["<&>\"'", "a\tb\nc\rd", "🍜"])
    func escaping(text: String) throws {
        #expect(try XMLElement(parsing: Array("<a>\(XMLText.escaped(text))</a>".utf8)).text == text)
        #expect(
            try XMLElement(parsing: Array("<a b=\"\(XMLText.escaped(text))\"/>".utf8)).attributes[.init("b")]
                == text
        )
    }
}

@Suite("Text codings")
struct CodingTests {
    @Test(
        "base64 in both alphabets (RFC 4648 section 10)",
        arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
    )
    func base64(text: String, encoded: String) {
        #expect(Base64.encode(Array(text.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(text.utf8))
        #expect(Base64.decode(encoded.filter { $0 != "=" }) == Array(text.utf8))
    }

    @Test("broken base64 is refused", arguments: ["Z", "Zg=", "Zm9v=", "Z g==", "Zm9v!", "=Zg="])
    func brokenBase64(text: String) { #expect(Base64.decode(text) == nil) }

    @Test("base64 of every length is Foundation's, and no byte outside of the alphabets is read")
    func everyBase64() {
        for count in 0...200 {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 151 &+ count &* 7) }
            let text = Base64.encode(bytes)
            #expect(text == Data(bytes).base64EncodedString())
            #expect(Base64.decode(text) == bytes && Base64.decode(Base64.encodeURL(bytes)) == bytes)
            #expect(Base64.decode(text.dropLast(0)) == bytes)
            let broken = text.map { "\($0)\r\n \t" }.joined()
            #expect(Base64.decode(broken, skipsBlanks: true) == bytes)
            #expect(count == 0 || Base64.decode(broken) == nil)
        }
        let alphabets = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_".utf8)
        for byte in UInt8(0)...127 {
            let text = "AAA" + String(UnicodeScalar(byte))
            #expect((Base64.decode(text) != nil) == (alphabets.contains(byte) || byte == UInt8(ascii: "=")))
        }
        #expect(Base64.decode("AAé=") == nil)
    }

    @Test("percent-encoding decodes once, and plus is a blank only where asked")
    func percent() {
        #expect(PercentEncoding.decode("a%2Fb%2526+c") == "a/b%26+c")
        #expect(PercentEncoding.decode("a+b", plusIsBlank: true) == "a b")
        #expect(PercentEncoding.decode("%2") == nil)
        #expect(PercentEncoding.decode("%zz") == nil)
        #expect(PercentEncoding.decode("%ff") == nil)
        #expect(PercentEncoding.encode("åa b/~", lowerCaseHex: true) == "%c3%a5a%20b%2f~")
    }

    @Test("a target is split and decoded once; names compare without case; a trailing slash is dropped")
    func target() throws {
        let target = try #require(RequestTarget("/Hub/Messages/%24batch/?Direct&API-version=1&q=a%26b+c&q=2"))
        #expect(target.segments == ["Hub", "Messages", "$batch"])
        #expect(target.parameter("direct") == "")
        #expect(target.parameter("api-VERSION") == "1")
        #expect(target.parameter("q") == "a&b c")
        #expect(RequestTarget("no-slash") == nil)
        #expect(RequestTarget("/%zz") == nil)
    }

    @Test(
        "URLs",
        arguments: [
            ("https://Example.net/a?b#c", "https://example.net/a?b"), ("http://[::1]:80", "http://[::1]/"),
            ("https://a:8443?x", "https://a:8443/?x"),
        ]
    )
    func urls(text: String, shown: String) { #expect(HTTPURL(text)?.description == shown) }

    @Test(
        "what is no URL of ours",
        arguments: [
            "ftp://a", "https://", "https://a b", "https://u@h/", "https://a:0/", "https://a:99999",
            "https://[::1", "http://a:+80/", "https://evil.example\\.notify.windows.com/", "https://a%2eb/",
            "https://[a]/", "https://a:80:81/",
        ]
    )
    func brokenURLs(text: String) { #expect(HTTPURL(text) == nil) }
}

import Foundation
import FoundationXML
import Glibc
import HubAPI
import JSONBytes
import ProcessLifecycle
import TidingsModels

/// Bodies decoded and checked per CPU-second of one thread: an installation as JSON, a template registration as Atom. Against
/// what Foundation brings: `JSONDecoder` into structs without a check, `XMLParser` with a delegate that only counts.
struct DecodingBenchmark {
    let secondCount: Int

    func run() throws {
        let json = InstallationJSON.value(try Samples.installation()).serialized()
        let atom = Array(RegistrationXML.request(try Samples.registration(), id: nil).utf8)
        Console.print("decoded per CPU-second")
        let decoder = JSONDecoder()
        let data = Data(json)
        try report(
            "installation, JSON, \(json.count) bytes",
            json.count,
            ours: { _ = try InstallationJSON.read(json, id: "6f0d3c2e-5a10-4b7e-9d0a-2f1c7c5b8e11") },
            "JSONDecoder",
            theirs: { _ = try decoder.decode(PlainInstallation.self, from: data) }
        )
        let document = Data(atom)
        try report(
            "registration, Atom, \(atom.count) bytes",
            atom.count,
            ours: { _ = try RegistrationXML.readRequest(atom) },
            "XMLParser",
            theirs: {
                let counter = ElementCounter()
                let parser = XMLParser(data: document)
                parser.delegate = counter
                guard parser.parse(), counter.count > 5 else { throw BenchmarkError("XMLParser failed") }
            }
        )
    }

    private func report(
        _ name: String,
        _ byteCount: Int,
        ours: () throws -> Void,
        _ peer: String,
        theirs: () throws -> Void
    ) throws {
        let own = try perCPUSecond(ours)
        let other = try perCPUSecond(theirs)
        Console.print(
            "  \(name): tidings \(decimal(own, 0)) (\(decimal(own * Double(byteCount) / 1e6, 0)) MB/s)"
                + "  \(peer) \(decimal(other, 0))  ratio \(decimal(own / other, 2))"
        )
    }

    private func perCPUSecond(_ body: () throws -> Void) throws -> Double {
        let start = Self.cpuSeconds()
        var count = 0
        while true {
            for _ in 0..<256 { try body() }
            count += 256
            let passed = Self.cpuSeconds() - start
            if passed >= Double(secondCount) { return Double(count) / passed }
        }
    }

    /// CPU time of this thread.
    private static func cpuSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// What `JSONDecoder` is asked for.
private struct PlainInstallation: Decodable {
    struct Template: Decodable {
        var body: String
        var tags: [String]?
        var headers: [String: String]?
    }
    var installationId: String
    var platform: String
    var pushChannel: String
    var tags: [String]?
    var userId: String?
    var templates: [String: Template]?
}

private final class ElementCounter: NSObject, XMLParserDelegate {
    var count = 0
    func parser(
        _ parser: XMLParser,
        didStartElement elementName: String,
        namespaceURI: String?,
        qualifiedName: String?,
        attributes: [String: String]
    ) { count += 1 }
}

/// What an app of the tutorials registers.
enum Samples {
    static func installation() throws -> Installation {
        try InstallationJSON.read(
            Array(
                #"""
                {"installationId":"6f0d3c2e-5a10-4b7e-9d0a-2f1c7c5b8e11","platform":"apns",
                "pushChannel":"740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad","userId":"alice",
                "tags":["Sports","World","locale:en"],"templates":{"news":{"body":"{\"aps\":{\"alert\":\"$(messageParam)\"}}",
                "tags":["news"],"headers":{"apns-priority":"10"}}}}
                """#.utf8
            ),
            id: "6f0d3c2e-5a10-4b7e-9d0a-2f1c7c5b8e11"
        )
    }

    static func registration() throws -> RegistrationContent {
        RegistrationContent(
            handle: try PlatformHandle(
                "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad",
                platform: .apns
            ),
            tags: [try HubTag("username:alice"), try HubTag("Sports")],
            template: RegistrationTemplate(body: #"{"aps":{"alert":"$(messageParam)"}}"#)
        )
    }
}

package import TidingsModels
import XMLBytes

/// The Atom form of jobs (protocol reference, section 8.2).
package enum JobXML {
    private static let arrays = "http://schemas.microsoft.com/2003/10/Serialization/Arrays"

    // MARK: Writing

    package static func entry(_ job: HubJob, url: String) -> String {
        "<entry xmlns=\"\(RegistrationXML.atom)\">\(content(job, url))</entry>"
    }

    package static func feed(_ jobs: [(job: HubJob, url: String)], url: String, updated: Timestamp) -> String
    {
        var text =
            "<feed xmlns=\"\(RegistrationXML.atom)\"><title type=\"text\">jobs</title><id>\(XMLText.escaped(url))</id>"
        text +=
            "<updated>\(updated.wholeSeconds)</updated><link rel=\"self\" href=\"\(XMLText.escaped(url))\"/>"
        for (job, url) in jobs { text += "<entry>\(content(job, url))</entry>" }
        return text + "</feed>"
    }

    private static func content(_ job: HubJob, _ url: String) -> String {
        let url = XMLText.escaped(url)
        return
            "<id>\(url)</id><title type=\"text\">\(XMLText.escaped(job.id))</title><published>\(job.created.wholeSeconds)</published>"
            + "<updated>\(job.updated.wholeSeconds)</updated><link rel=\"self\" href=\"\(url)\"/>"
            + "<content type=\"application/xml\">\(description(job))</content>"
    }

    private static func description(_ job: HubJob) -> String {
        var text =
            "<NotificationHubJob xmlns=\"\(RegistrationXML.connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\">"
        func add(_ name: String, _ value: String) { text += "<\(name)>\(XMLText.escaped(value))</\(name)>" }
        if !job.id.isEmpty { add("JobId", job.id) }
        if job.progress > 0 { add("Progress", decimal(job.progress)) }
        add("Type", job.kind.rawValue)
        if job.status != .started { add("Status", job.status.rawValue) }
        add("OutputContainerUri", job.outputContainer)
        if let file = job.importFile { add("ImportFileUri", file) }
        text += dictionary("InputProperties", job.inputProperties)
        if let failure = job.failure { add("Failure", failure) }
        text += dictionary("OutputProperties", job.outputProperties)
        if job.created.milliseconds > 0 { add("CreatedAt", job.created.description) }
        if job.updated.milliseconds > 0 { add("UpdatedAt", job.updated.description) }
        return text + "</NotificationHubJob>"
    }

    private static func decimal(_ progress: Double) -> String {
        let tenths = Int((progress * 10).rounded(.down))
        return tenths % 10 == 0 ? String(tenths / 10) : "\(tenths / 10).\(tenths % 10)"
    }

    /// Java and JavaScript look for the literal prefix; JavaScript fails on an element without pairs.
    private static func dictionary(_ name: String, _ pairs: [String: String]) -> String {
        guard !pairs.isEmpty else { return "" }
        let items = pairs.sorted { $0.key > $1.key }.map {
            "<d3p1:KeyValueOfstringstring><d3p1:Key>\(XMLText.escaped($0.key))</d3p1:Key>"
                + "<d3p1:Value>\(XMLText.escaped($0.value))</d3p1:Value></d3p1:KeyValueOfstringstring>"
        }
        return "<\(name) xmlns:d3p1=\"\(arrays)\">\(items.joined())</\(name)>"
    }

    /// The entry that a client sends.
    package static func request(_ job: HubJob) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(RegistrationXML.atom)\"><content type=\"application/xml\">"
            + description(job) + "</content></entry>"
    }

    // MARK: Reading

    package static func read(_ bytes: [UInt8]) throws(HubError) -> HubJob {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not an Atom entry: \(error).")
        }
        return try read(root)
    }

    package static func readFeed(_ bytes: [UInt8]) throws(HubError) -> [HubJob] {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badGateway, "The hub's answer is not XML: \(error).")
        }
        var jobs: [HubJob] = []
        for entry in root.elements where entry.name.local == "entry" { jobs.append(try read(entry)) }
        return jobs
    }

    private static func read(_ entry: XMLElement) throws(HubError) -> HubJob {
        guard entry.name.local == "entry", let job = entry.first("content")?.first("NotificationHubJob")
        else {
            throw HubError(
                .badRequest,
                "The body is not an Atom <entry> with a <NotificationHubJob> in its <content>."
            )
        }
        func value(_ name: String) -> String? {
            guard let child = job.first(name), !child.isNil, !child.text.isEmpty else { return nil }
            return child.text
        }
        guard let name = value("Type"), let kind = HubJob.Kind(rawValue: name) else {
            throw HubError(
                .badRequest,
                "The job's Type '\(value("Type") ?? "")' is not one of \(HubJob.Kind.allCases.map(\.rawValue).joined(separator: ", "))."
            )
        }
        guard let output = value("OutputContainerUri") else {
            throw HubError(
                .badRequest,
                "OutputContainerUri is missing: the container that the output goes to."
            )
        }
        return HubJob(
            id: value("JobId") ?? "",
            kind: kind,
            status: value("Status").flatMap { HubJob.Status(rawValue: $0) } ?? .started,
            progress: value("Progress").flatMap { Double($0) } ?? 0,
            outputContainer: output,
            importFile: value("ImportFileUri"),
            inputProperties: pairs(job.first("InputProperties")),
            outputProperties: pairs(job.first("OutputProperties")),
            failure: value("Failure"),
            created: value("CreatedAt").flatMap(Timestamp.init(parsing:)) ?? Timestamp(milliseconds: 0),
            updated: value("UpdatedAt").flatMap(Timestamp.init(parsing:)) ?? Timestamp(milliseconds: 0)
        )
    }

    private static func pairs(_ element: XMLElement?) -> [String: String] {
        Dictionary(
            (element?.elements ?? []).compactMap { item in
                item.first("Key").map { ($0.text, item.first("Value")?.text ?? "") }
            }
        ) { first, _ in first }
    }
}

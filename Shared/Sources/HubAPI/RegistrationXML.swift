package import TidingsModels
import XMLBytes

/// The Atom form of registrations (protocol reference, section 3).
package enum RegistrationXML {
    static let atom = "http://www.w3.org/2005/Atom"
    static let connect = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
    static let metadata = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"

    // MARK: Writing

    /// One entry, without white space between the elements: iOS keeps it as part of the values.
    ///
    /// - Parameters:
    ///   - url: The absolute address of the registration, with the query of the request.
    package static func entry(_ registration: Registration, url: String) -> String {
        "<entry a:etag=\"W/&quot;\(registration.etag)&quot;\" xmlns=\"\(atom)\" xmlns:a=\"\(metadata)\">"
            + entryContent(registration, url: url) + "</entry>"
    }

    private static func entryContent(_ registration: Registration, url: String) -> String {
        let url = XMLText.escaped(url)
        let time = registration.updated.wholeSeconds
        return "<id>\(url)</id><title type=\"text\">\(registration.id)</title><published>\(time)</published>"
            + "<updated>\(time)</updated><link rel=\"self\" href=\"\(url)\"/>"
            + "<content type=\"application/xml\">\(description(registration))</content>"
    }

    /// A feed of entries; `url` is that of the request, and `entryURL` that of each entry.
    package static func feed(
        _ registrations: [Registration],
        url: String,
        updated: Timestamp,
        nextURL: String?,
        entryURL: (Registration) -> String
    ) -> String {
        var text =
            "<feed xmlns=\"\(atom)\"><title type=\"text\">Registrations</title><id>\(XMLText.escaped(url))</id>"
        text +=
            "<updated>\(updated.wholeSeconds)</updated><link rel=\"self\" href=\"\(XMLText.escaped(url))\"/>"
        if let nextURL { text += "<link rel=\"next\" href=\"\(XMLText.escaped(nextURL))\"/>" }
        for registration in registrations {
            text += "<entry a:etag=\"W/&quot;\(registration.etag)&quot;\" xmlns:a=\"\(metadata)\">"
            text += entryContent(registration, url: entryURL(registration)) + "</entry>"
        }
        return text + "</feed>"
    }

    /// The description, its members in the order of the original's data contract: the .NET reader drops others.
    private static func description(_ registration: Registration, inLine: Bool = false) -> String {
        let content = registration.content
        let names = Names(content.handle.platform)
        let root = names.prefix + (content.template == nil ? "" : "Template") + "RegistrationDescription"
        var text =
            "<\(root) xmlns=\"\(connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\"><ETag>\(registration.etag)</ETag>"
        text +=
            "<ExpirationTime>\(registration.expires)</ExpirationTime><RegistrationId>\(registration.id)</RegistrationId>"
        text += shared(content, names, inLine: inLine)
        return text + "</\(root)>"
    }

    /// What a request and an answer have in common.
    /// - Parameter inLine: Without line ends, which a CDATA section could not carry otherwise.
    private static func shared(_ content: RegistrationContent, _ names: Names, inLine: Bool = false) -> String
    {
        var text = ""
        if !content.tags.isEmpty {
            text += element("Tags", content.tags.map(\.text).joined(separator: ","))
        }
        if !content.pushVariables.isEmpty {
            text += element("PushVariables", PushVariables.text(content.pushVariables))
        }
        for (name, value) in names.values(content.handle) { text += element(name, value) }
        if let tile = content.secondaryTileName { text += element("SecondaryTileName", tile) }
        guard let template = content.template else { return text }
        let isMultiline = template.body.utf8.contains { $0 == 0x0A || $0 == 0x0D }
        let body = inLine && isMultiline ? XMLText.escaped(template.body) : XMLText.cdata(template.body)
        text += "<BodyTemplate>\(body)</BodyTemplate>"
        let headers = headerList(template.headers, names)
        let isApple = content.handle.platform == .apns
        if !isApple { text += headers }
        // The original writes both for every Apple template.
        if isApple { text += template.expiry.map { element("Expiry", $0) } ?? "<Expiry i:nil=\"true\"/>" }
        if let name = template.name { text += element("TemplateName", name) }
        if let priority = template.priority { text += element("Priority", priority) }
        if isApple { text += headers }
        if content.handle.platform == .baidu, let type = template.headers.first {
            text += element("MessageType", type.value)
        }
        return text
    }

    private static func headerList(_ headers: [RegistrationTemplate.Header], _ names: Names) -> String {
        guard let prefix = names.headers else { return "" }
        if headers.isEmpty { return "<\(prefix)Headers/>" }
        let items = headers.map {
            "<\(prefix)Header>" + element("Header", $0.name) + element("Value", $0.value)
                + "</\(prefix)Header>"
        }
        return "<\(prefix)Headers>\(items.joined())</\(prefix)Headers>"
    }

    private static func element(_ name: String, _ text: String) -> String {
        "<\(name)>\(XMLText.escaped(text))</\(name)>"
    }

    /// The entry that a client sends.
    package static func request(_ content: RegistrationContent, id: RegistrationID?) -> String {
        let names = Names(content.handle.platform)
        let root = names.prefix + (content.template == nil ? "" : "Template") + "RegistrationDescription"
        var text =
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(atom)\"><content type=\"application/xml\">"
        text += "<\(root) xmlns:i=\"\(XMLElement.schemaInstance)\" xmlns=\"\(connect)\">"
        if let id { text += "<RegistrationId>\(id)</RegistrationId>" }
        return text + shared(content, names) + "</\(root)></content></entry>"
    }

    // MARK: Reading

    /// What a client sent: the id is nil when the entry has none.
    package struct Request: Equatable {
        package var id: String?
        package var content: RegistrationContent
    }

    /// Reads the entry of a create or update. Order, unknown elements, extra Atom children and the two forms of
    /// the root are all taken.
    package static func readRequest(_ bytes: [UInt8]) throws(HubError) -> Request {
        let description = try description(in: try parse(bytes))
        return Request(id: value(description, "RegistrationId"), content: try readContent(description))
    }

    /// One line of an import: what stands inside an entry's content.
    package struct Line: Equatable {
        package var id: String?
        package var etag: Int?
        package var content: RegistrationContent
    }

    package static func readLine(_ bytes: [UInt8]) throws(HubError) -> Line {
        let description: XMLElement
        do throws(XMLError) { description = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The line is not a registration description: \(error).")
        }
        return Line(
            id: value(description, "RegistrationId"),
            etag: value(description, "ETag").flatMap { Int($0) },
            content: try readContent(description)
        )
    }

    /// The id alone, for a deletion, whose line need not hold more.
    package static func readLineID(_ bytes: [UInt8]) throws(HubError) -> (id: String?, etag: Int?) {
        let description: XMLElement
        do throws(XMLError) { description = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The line is not a registration description: \(error).")
        }
        return (value(description, "RegistrationId"), value(description, "ETag").flatMap { Int($0) })
    }

    /// One line of an export, without its line end.
    package static func line(_ registration: Registration) -> String {
        description(registration, inLine: true)
    }

    /// Reads one registration from an answer.
    package static func readEntry(_ bytes: [UInt8]) throws(HubError) -> Registration {
        try registration(in: try parse(bytes))
    }

    package static func readFeed(_ bytes: [UInt8]) throws(HubError) -> [Registration] {
        let root = try parse(bytes)
        guard root.name.local == "feed" else {
            throw HubError(.badGateway, "The hub answered <\(root.name.local)> instead of a feed.")
        }
        var registrations: [Registration] = []
        for element in root.elements where element.name.local == "entry" {
            // A hub may hold platforms that this client does not know.
            guard let description = element.first("content")?.elements.first,
                Names.platform(rootName(description)) != nil
            else { continue }
            registrations.append(try registration(in: element))
        }
        return registrations
    }

    private static func parse(_ bytes: [UInt8]) throws(HubError) -> XMLElement {
        do throws(XMLError) { return try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not an Atom entry: \(error).")
        }
    }

    private static func description(in entry: XMLElement) throws(HubError) -> XMLElement {
        guard entry.name.local == "entry" else {
            throw HubError(
                .badRequest,
                "The root element is <\(entry.name.local)>; an Atom <entry> is expected."
            )
        }
        guard let content = entry.first("content"), let description = content.elements.first else {
            throw HubError(.badRequest, "The entry has no <content> with a registration description.")
        }
        return description
    }

    private static func registration(in entry: XMLElement) throws(HubError) -> Registration {
        let description = try description(in: entry)
        guard let id = value(description, "RegistrationId") else {
            throw HubError(.badRequest, "The registration has no RegistrationId.")
        }
        return Registration(
            id: RegistrationID(unchecked: id),
            etag: value(description, "ETag").flatMap { Int($0) } ?? 0,
            expires: value(description, "ExpirationTime").flatMap(Timestamp.init(parsing:)) ?? .never,
            updated: entry.first("updated").flatMap { Timestamp(parsing: $0.text) }
                ?? Timestamp(milliseconds: 0),
            content: try readContent(description)
        )
    }

    private static func rootName(_ description: XMLElement) -> String {
        let root = description.name.local
        guard root == "RegistrationDescription" else { return root }
        let type = description.attributes[.init("type", in: XMLElement.schemaInstance)] ?? ""
        return type.split(separator: ":").last.map(String.init) ?? ""
    }

    private static func readContent(_ description: XMLElement) throws(HubError) -> RegistrationContent {
        let root = rootName(description)
        guard let (platform, isTemplate) = Names.platform(root) else {
            throw HubError(
                .badRequest,
                "The registration type '\(root)' is not supported. Supported are Apple, Gcm, Fcm, FcmV1, Windows, Mpns, Adm, Baidu, "
                    + "Browser and Xiaomi, each followed by RegistrationDescription or TemplateRegistrationDescription."
            )
        }
        let names = Names(platform)
        let handle = try names.handle(platform) { value(description, $0) }
        let tagText = value(description, "Tags") ?? ""
        // Whether a client may state them is the hub's rule: it may write back what it read.
        let tags = HubTag.uncheckedList(tagText)
        return RegistrationContent(
            handle: handle,
            tags: tags,
            pushVariables: try PushVariables.read(value(description, "PushVariables")),
            template: isTemplate ? try readTemplate(description, names) : nil,
            secondaryTileName: value(description, "SecondaryTileName")
        )
    }

    private static func readTemplate(
        _ description: XMLElement,
        _ names: Names
    ) throws(HubError) -> RegistrationTemplate {
        guard let body = value(description, "BodyTemplate") else {
            throw HubError(.badRequest, "The element <BodyTemplate> is missing or empty.")
        }
        var headers: [RegistrationTemplate.Header] = []
        if let prefix = names.headers, let list = description.first(prefix + "Headers") {
            for item in list.elements where item.name.local == prefix + "Header" {
                guard let name = value(item, "Header") else {
                    throw HubError(.badRequest, "A <\(prefix)Header> has no <Header> name.")
                }
                headers.append(.init(name, item.first("Value")?.text ?? ""))
            }
        }
        if names.prefix == "Baidu", let type = value(description, "MessageType") {
            headers.append(.init(BaiduMessageType.header, type))
        }
        return RegistrationTemplate(
            name: value(description, "TemplateName"),
            body: body,
            headers: headers,
            expiry: value(description, "Expiry"),
            priority: value(description, "Priority")
        )
    }

    /// The text of a child; nil when it is absent, nil or empty.
    private static func value(_ parent: XMLElement, _ name: String) -> String? {
        guard let child = parent.first(name), !child.isNil else { return nil }
        let text = child.text
        return text.isEmpty ? nil : text
    }
}

package import TidingsModels
import XMLBytes

/// The Atom form of hub descriptions (protocol reference, sections 9.1 and 9.2).
package enum HubDescriptionXML {
    private static let atom = RegistrationXML.atom
    /// The elements of the credentials, in the order of the contract.
    private static let early: [(Platform, String)] = [(.wns, "WnsCredential")]
    private static let middle: [(Platform, String)] = [(.gcm, "GcmCredential"), (.mpns, "MpnsCredential")]
    private static let late: [(Platform, String)] = [
        (.fcmV1, "FcmV1Credential"), (.browser, "BrowserCredential"), (.xiaomi, "XiaomiCredential"),
    ]
    private static let all: [(Platform, String)] =
        [(.apns, "ApnsCredential"), (.adm, "AdmCredential"), (.baidu, "BaiduCredential")] + early + middle
        + late

    // MARK: Writing

    /// How many registrations and devices a hub has, which an answer to a read tells.
    package struct Usage: Equatable, Sendable {
        package var deviceCount: Int
        package var registrationCount: Int
        package var callCount: Int

        package init(deviceCount: Int, registrationCount: Int, callCount: Int) {
            self.deviceCount = deviceCount
            self.registrationCount = registrationCount
            self.callCount = callCount
        }
    }

    /// - Parameters:
    ///   - namespace: The name of the namespace, as author.
    ///   - url: The absolute address of the hub, with the query of the request.
    ///   - isUpdate: An answer to an update tells no `published` and the status.
    package static func entry(
        _ hub: HubDescription,
        namespace: String,
        url: String,
        usage: Usage? = nil,
        isUpdate: Bool = false
    ) -> String {
        "<entry xmlns=\"\(atom)\">" + entryContent(hub, namespace, url, usage, isUpdate) + "</entry>"
    }

    private static func entryContent(
        _ hub: HubDescription,
        _ namespace: String,
        _ url: String,
        _ usage: Usage?,
        _ isUpdate: Bool
    ) -> String {
        let url = XMLText.escaped(url)
        var text = "<id>\(url)</id><title type=\"text\">\(XMLText.escaped(hub.name))</title>"
        if !isUpdate { text += "<published>\(hub.created.wholeSeconds)</published>" }
        text +=
            "<updated>\(hub.updated.wholeSeconds)</updated><author><name>\(XMLText.escaped(namespace))</name></author>"
        text += "<link rel=\"self\" href=\"\(url)\"/><content type=\"application/xml\">"
        return text + description(hub, usage, writesStatus: isUpdate) + "</content>"
    }

    private static func description(_ hub: HubDescription, _ usage: Usage?, writesStatus: Bool) -> String {
        var text =
            "<NotificationHubDescription xmlns=\"\(RegistrationXML.connect)\" xmlns:i=\"\(XMLElement.schemaInstance)\">"
        func add(_ name: String, _ value: String) { text += "<\(name)>\(XMLText.escaped(value))</\(name)>" }
        func add(_ list: [(Platform, String)]) {
            for (platform, name) in list { text += credential(hub.credentials[platform], name) }
        }
        add([(.apns, "ApnsCredential")])
        add("RegistrationTtl", DurationText.text(hub.registrationTTL))
        add(early)
        text += "<AuthorizationRules>" + hub.policies.map(rule).joined() + "</AuthorizationRules>"
        add(middle)
        if let usage {
            add("DailyMaxActiveDevices", String(usage.deviceCount))
            add("DailyMaxActiveRegistrations", String(usage.registrationCount))
            add("DailyApiCalls", String(usage.callCount))
        }
        if let metadata = hub.userMetadata { add("UserMetadata", metadata) }
        add([(.adm, "AdmCredential"), (.baidu, "BaiduCredential")])
        if writesStatus || hub.isDisabled { add("Status", hub.isDisabled ? "true" : "false") }
        add(late)
        return text + "</NotificationHubDescription>"
    }

    private static func credential(_ properties: [String: String]?, _ name: String) -> String {
        guard let properties else { return "" }
        let items = properties.sorted { $0.key < $1.key }.map {
            "<Property><Name>\(XMLText.escaped($0.key))</Name><Value>\(XMLText.escaped($0.value))</Value></Property>"
        }
        return "<\(name)><Properties>\(items.joined())</Properties></\(name)>"
    }

    private static func rule(_ policy: AccessPolicy) -> String {
        let rights = policy.rights.names.map { "<AccessRights>\($0)</AccessRights>" }.joined()
        return
            "<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\"><ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue>"
            + "<Rights>\(rights)</Rights><CreatedTime>\(policy.created)</CreatedTime><ModifiedTime>\(policy.modified)</ModifiedTime>"
            + "<KeyName>\(XMLText.escaped(policy.name))</KeyName><PrimaryKey>\(XMLText.escaped(policy.primaryKey))</PrimaryKey>"
            + "<SecondaryKey>\(XMLText.escaped(policy.secondaryKey))</SecondaryKey></AuthorizationRule>"
    }

    /// The list that .NET reads: titles alone, whose text must be the bare name.
    package static func serviceFeed(
        _ hubs: [(hub: HubDescription, url: String)],
        id: String,
        updated: Timestamp
    ) -> String {
        var text = "<feed xmlns=\"\(atom)\"><title type=\"text\">Publicly Listed Services</title>"
        text +=
            "<subtitle type=\"text\">This is the list of publicly-listed services currently available.</subtitle>"
        text +=
            "<id>\(XMLText.escaped(id))</id><updated>\(updated.wholeSeconds)</updated><generator>Tidings</generator>"
        for (hub, url) in hubs {
            text +=
                "<entry><id>\(XMLText.escaped(url))</id><title type=\"text\">\(XMLText.escaped(hub.name))</title>"
            text +=
                "<updated>\(hub.updated.wholeSeconds)</updated><link rel=\"alternate\" href=\"\(XMLText.escaped(url))\"/></entry>"
        }
        return text + "</feed>"
    }

    /// The list that Java reads: whole entries.
    package static func feed(
        _ hubs: [(hub: HubDescription, url: String)],
        namespace: String,
        url: String,
        updated: Timestamp
    ) -> String {
        var text =
            "<feed xmlns=\"\(atom)\"><title type=\"text\">NotificationHubs</title><id>\(XMLText.escaped(url))</id>"
        text +=
            "<updated>\(updated.wholeSeconds)</updated><link rel=\"self\" href=\"\(XMLText.escaped(url))\"/>"
        for (hub, url) in hubs {
            text += "<entry>" + entryContent(hub, namespace, url, nil, false) + "</entry>"
        }
        return text + "</feed>"
    }

    // MARK: Reading

    /// Reads the entry of a create or update; the name is the address's.
    package static func read(_ bytes: [UInt8], name: String) throws(HubError) -> HubDescription {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badRequest, "The body is not an Atom entry: \(error).")
        }
        guard root.name.local == "entry",
            let description = root.first("content")?.first("NotificationHubDescription")
        else {
            throw HubError(
                .badRequest,
                "The body is not an Atom <entry> with a <NotificationHubDescription> in its <content>."
            )
        }
        var hub = try read(description, name: name)
        hub.created = root.first("published").flatMap { Timestamp(parsing: $0.text) } ?? hub.created
        hub.updated = root.first("updated").flatMap { Timestamp(parsing: $0.text) } ?? hub.updated
        return hub
    }

    /// The names of a list, of either form.
    package static func readNames(_ bytes: [UInt8]) throws(HubError) -> [String] {
        let root: XMLElement
        do throws(XMLError) { root = try XMLElement(parsing: bytes) } catch {
            throw HubError(.badGateway, "The hub's answer is not XML: \(error).")
        }
        guard root.name.local == "feed" else {
            throw HubError(.badGateway, "The hub answered <\(root.name.local)> instead of a feed.")
        }
        return root.elements.filter { $0.name.local == "entry" }.compactMap { $0.first("title")?.text }
    }

    private static func read(_ description: XMLElement, name: String) throws(HubError) -> HubDescription {
        var hub = HubDescription(name: name)
        func value(_ name: String) -> String? {
            guard let child = description.first(name), !child.isNil, !child.text.isEmpty else { return nil }
            return child.text
        }
        if let text = value("RegistrationTtl") {
            guard let duration = DurationText.parse(text) else {
                throw HubError(
                    .badRequest,
                    "RegistrationTtl '\(text)' is not a duration such as P90D or PT36H."
                )
            }
            hub.registrationTTL = duration
        }
        hub.userMetadata = value("UserMetadata")
        if let text = value("Status") {
            guard
                let isDisabled = [
                    "true": true, "1": true, "disabled": true, "false": false, "0": false, "active": false,
                ][text.lowercased()]
            else {
                throw HubError(.badRequest, "Status '\(text)' is neither true (disabled) nor false.")
            }
            hub.isDisabled = isDisabled
        }
        for (platform, name) in all {
            guard let element = description.first(name), !element.isNil else { continue }
            var properties: [String: String] = [:]
            for property in element.first("Properties")?.elements ?? [] {
                guard let name = property.first("Name")?.text, !name.isEmpty else {
                    throw HubError(.badRequest, "A <Property> of \(name) has no <Name>.")
                }
                properties[name] = property.first("Value")?.text ?? ""
            }
            hub.credentials[platform] = properties
        }
        for rule in description.first("AuthorizationRules")?.elements ?? [] {
            hub.policies.append(try policy(rule))
        }
        return hub
    }

    private static func policy(_ rule: XMLElement) throws(HubError) -> AccessPolicy {
        guard let name = rule.first("KeyName")?.text, !name.isEmpty else {
            throw HubError(.badRequest, "An <AuthorizationRule> has no <KeyName>.")
        }
        var policy = AccessPolicy(name: name, rights: [])
        policy.primaryKey = rule.first("PrimaryKey")?.text ?? ""
        policy.secondaryKey = rule.first("SecondaryKey")?.text ?? ""
        policy.created = rule.first("CreatedTime").flatMap { Timestamp(parsing: $0.text) } ?? policy.created
        policy.modified =
            rule.first("ModifiedTime").flatMap { Timestamp(parsing: $0.text) } ?? policy.modified
        for right in rule.first("Rights")?.elements ?? [] {
            guard let right = AccessRights(name: right.text) else {
                throw HubError(
                    .badRequest,
                    "The rule '\(name)' has the right '\(right.text)'. Rights are Listen, Manage and Send."
                )
            }
            policy.rights.insert(right)
        }
        return policy
    }

    /// The entry that a client sends.
    package static func request(_ hub: HubDescription) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"\(atom)\"><content type=\"application/xml\">"
            + description(hub, nil, writesStatus: false) + "</content></entry>"
    }
}

extension Timestamp {
    /// Without the fraction, as the Atom elements have it.
    var wholeSeconds: String { String(description.dropLast(5)) + "Z" }
}

import TidingsModels

/// The packed form of a registration: a version byte, then fields with their lengths. Fixed once written; a new form
/// gets a new version byte and keeps the reader of the old one.
enum RegistrationRecord {
    /// 2 begins with who made the registration; 1 did not know. 3 goes on with the slot of an installation and the keys of a
    /// browser.
    private static let version: UInt8 = 3

    static func encode(_ registration: Registration, isManaged: Bool, slot: InstallationSlot?) -> [UInt8] {
        var writer = RecordWriter()
        writer.bytes.append(version)
        writer.integer(isManaged ? 1 : 0)
        writer.optional(slot?.installation)
        if let slot {
            writer.optional(slot.tile)
            writer.optional(slot.template)
        }
        let keys = registration.content.handle.keys
        writer.optional(keys?.p256dh)
        if let keys { writer.text(keys.auth) }
        let content = registration.content
        writer.text(registration.id.text)
        writer.integer(Int64(registration.etag))
        writer.integer(registration.expires.milliseconds)
        writer.integer(registration.updated.milliseconds)
        writer.text(content.handle.platform.rawValue)
        writer.text(content.handle.text)
        writer.integer(Int64(content.tags.count))
        for tag in content.tags { writer.text(tag.text) }
        writer.integer(Int64(content.pushVariables.count))
        for (name, value) in content.pushVariables.sorted(by: { $0.key < $1.key }) {
            writer.text(name)
            writer.text(value)
        }
        writer.optional(content.secondaryTileName)
        writer.integer(content.template == nil ? 0 : 1)
        if let template = content.template {
            writer.optional(template.name)
            writer.text(template.body)
            writer.integer(Int64(template.headers.count))
            for header in template.headers {
                writer.text(header.name)
                writer.text(header.value)
            }
            writer.optional(template.expiry)
            writer.optional(template.priority)
        }
        return writer.bytes
    }

    /// Nil when the bytes are not a record of a version that this program knows.
    static func decode(_ bytes: [UInt8]) -> (Registration, isManaged: Bool, slot: InstallationSlot?)? {
        guard let version = bytes.first, (1...Self.version).contains(version) else { return nil }
        var reader = RecordReader(bytes: bytes, position: 1)
        var isManaged = false
        if version >= 2 {
            guard let flag = reader.integer() else { return nil }
            isManaged = flag == 1
        }
        var slot: InstallationSlot?
        var keys: SubscriptionKeys?
        if version >= 3 {
            guard let installation = reader.optional() else { return nil }
            if let installation {
                guard let tile = reader.optional(), let template = reader.optional() else { return nil }
                slot = InstallationSlot(installation: installation, tile: tile, template: template)
            }
            guard let p256dh = reader.optional() else { return nil }
            if let p256dh {
                guard let auth = reader.text() else { return nil }
                keys = SubscriptionKeys(p256dh: p256dh, auth: auth)
            }
        }
        guard let id = reader.text(), let etag = reader.integer(), let expires = reader.integer(),
            let updated = reader.integer(), let platform = reader.text().flatMap(Platform.init(rawValue:)),
            let handle = reader.text(), let tags = reader.list({ $0.text().map(HubTag.init(unchecked:)) }),
            let variables = reader.list({ reader in
                reader.text().flatMap { name in reader.text().map { (name, $0) } }
            }),
            let tile = reader.optional(), let hasTemplate = reader.integer()
        else { return nil }
        var template: RegistrationTemplate?
        if hasTemplate == 1 {
            guard let name = reader.optional(), let body = reader.text(),
                let headers = reader.list({ reader in
                    reader.text().flatMap { name in
                        reader.text().map { RegistrationTemplate.Header(name, $0) }
                    }
                }),
                let expiry = reader.optional(), let priority = reader.optional()
            else { return nil }
            template = RegistrationTemplate(
                name: name,
                body: body,
                headers: headers,
                expiry: expiry,
                priority: priority
            )
        }
        let registration = Registration(
            id: RegistrationID(unchecked: id),
            etag: Int(etag),
            expires: Timestamp(milliseconds: expires),
            updated: Timestamp(milliseconds: updated),
            content: RegistrationContent(
                handle: PlatformHandle(unchecked: handle, platform: platform, keys: keys),
                tags: tags,
                pushVariables: Dictionary(variables) { first, _ in first },
                template: template,
                secondaryTileName: tile
            )
        )
        return (registration, isManaged, slot)
    }
}

struct RecordWriter {
    var bytes: [UInt8] = []

    /// A zigzag varint: small numbers take one byte.
    mutating func integer(_ value: Int64) {
        var rest = UInt64(bitPattern: value << 1 ^ value >> 63)
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func text(_ text: String) {
        integer(Int64(text.utf8.count))
        bytes += text.utf8
    }

    mutating func optional(_ text: String?) {
        integer(text == nil ? 0 : 1)
        if let text { self.text(text) }
    }
}

struct RecordReader {
    let bytes: [UInt8]
    var position: Int

    mutating func integer() -> Int64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1) }
            shift += 7
        }
        return nil
    }

    mutating func text() -> String? {
        guard let count = integer(), count >= 0, count <= bytes.count - position else { return nil }
        defer { position += Int(count) }
        return String(decoding: bytes[position..<(position + Int(count))], as: UTF8.self)
    }

    /// The outer optional is nil for broken bytes.
    mutating func optional() -> String?? {
        switch integer() {
        case 0: return .some(nil)
        case 1: return text().map { .some($0) }
        default: return nil
        }
    }

    mutating func list<Element>(_ read: (inout RecordReader) -> Element?) -> [Element]? {
        guard let count = integer(), count >= 0, count <= bytes.count else { return nil }
        var list: [Element] = []
        for _ in 0..<count {
            guard let element = read(&self) else { return nil }
            list.append(element)
        }
        return list
    }
}

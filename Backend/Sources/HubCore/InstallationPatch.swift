import HTTPMessages
import HubAPI
import JSONBytes
package import TidingsModels

/// A PATCH of an installation (protocol reference, section 4.7): all operations are applied, or none.
package struct InstallationPatch: Sendable {
    package static let operationCountMax = 1000

    private struct Operation: Sendable {
        enum Kind: String { case add, remove, replace }
        var kind: Kind
        var path: String
        var segments: [String]
        var value: JSONValue?
    }

    private let operations: [Operation]

    /// Reads the JSON array.
    /// - Throws: ``HubError`` `.badRequest` that names the operation.
    package init(_ bytes: [UInt8]) throws(HubError) {
        let value: JSONValue
        do throws(JSONError) { value = try JSONValue(parsing: bytes) } catch {
            throw HubError(.badRequest, "The patch is not JSON: \(error).")
        }
        guard let items = value.arrayValue, items.count <= Self.operationCountMax else {
            throw HubError(
                .badRequest,
                "The patch must be an array of at most \(Self.operationCountMax) operations {\"op\", \"path\", \"value\"}."
            )
        }
        var operations: [Operation] = []
        for (index, item) in items.enumerated() {
            guard let object = item.objectValue,
                let name = object.member(ignoringCase: "op")?.stringValue,
                let kind = Operation.Kind(rawValue: name.lowercased())
            else { throw HubError(.badRequest, "Operation \(index) has no 'op' of add, remove or replace.") }
            guard let path = object.member(ignoringCase: "path")?.stringValue,
                path.utf8.first == UInt8(ascii: "/")
            else {
                throw HubError(
                    .badRequest,
                    "Operation \(index) has no 'path' that begins with '/', such as /tags."
                )
            }
            let segments = ASCII.split(path, at: UInt8(ascii: "/")).dropFirst().map(Self.unescaped)
            var value = object.member(ignoringCase: "value")
            if value == .null { value = nil }
            operations.append(Operation(kind: kind, path: path, segments: segments, value: value))
        }
        self.operations = operations
    }

    /// RFC 6901 section 4.
    private static func unescaped(_ segment: String) -> String {
        ASCII.replacing(ASCII.replacing(segment, "~1", with: "/"), "~0", with: "~")
    }

    /// The installation after all operations, checked like a new one.
    package func applied(to installation: Installation) throws(HubError) -> Installation {
        guard var object = InstallationJSON.value(installation).objectValue else { return installation }
        let channel = object["pushChannel"]
        for operation in operations {
            do throws(HubError) {
                try Self.apply(operation, operation.segments[...], to: &object, isTile: false)
            } catch {
                throw HubError(error.code, "\(operation.kind.rawValue) \(operation.path): \(error.message)")
            }
        }
        var patched = try InstallationJSON.read(.object(object), id: installation.id)
        if object["pushChannel"] != channel { patched.isChannelExpired = false }
        for index in patched.secondaryTiles.indices {
            let tile = patched.secondaryTiles[index]
            let before = installation.secondaryTiles.first { $0.name == tile.name }
            patched.secondaryTiles[index].isChannelExpired =
                before.map { $0.isChannelExpired && $0.handle == tile.handle } ?? false
        }
        return patched
    }

    // MARK: Paths

    private static func apply(
        _ operation: Operation,
        _ path: ArraySlice<String>,
        to object: inout JSONObject,
        isTile: Bool
    ) throws(HubError) {
        let rest = path.dropFirst()
        switch path.first?.lowercased() {
        case "pushchannel" where rest.isEmpty:
            guard operation.kind != .remove, let value = operation.value else {
                throw HubError(.badRequest, "a push channel can be replaced, not removed.")
            }
            object["pushChannel"] = value
        case "userid" where rest.isEmpty && !isTile, "user" where rest.isEmpty && !isTile:
            try setText(operation, "userId", in: &object)
        case "expirationtime" where rest.isEmpty && !isTile:
            try setText(operation, "expirationTime", in: &object)
        case "tags": try applyTags(operation, rest, to: &object)
        case "pushvariables" where !isTile: try applyStrings(operation, rest, "pushVariables", to: &object)
        case "templates":
            try applyObjects(operation, rest, "templates", to: &object) {
                (operation, rest, template) throws(HubError) in
                try applyTemplate(operation, rest, to: &template)
            }
        case "secondarytiles" where !isTile:
            try applyObjects(operation, rest, "secondaryTiles", to: &object) {
                (operation, rest, tile) throws(HubError) in
                try apply(operation, rest, to: &tile, isTile: true)
            }
        default:
            throw HubError(
                .badRequest,
                "the path is not one that can be changed. Paths are /pushChannel, /userId, /tags[/tag], /templates[/name[/body, /headers[/name], "
                    + "/expiry or /tags[/tag]]], /secondaryTiles[/name[/…]], /pushVariables[/name] and /expirationTime."
            )
        }
    }

    private static func applyTemplate(
        _ operation: Operation,
        _ path: ArraySlice<String>,
        to template: inout JSONObject
    ) throws(HubError) {
        let rest = path.dropFirst()
        switch path.first?.lowercased() {
        case "body" where rest.isEmpty && operation.kind != .remove:
            try setText(operation, "body", in: &template)
        case "expiry" where rest.isEmpty: try setText(operation, "expiry", in: &template)
        case "headers": try applyStrings(operation, rest, "headers", to: &template)
        case "tags": try applyTags(operation, rest, to: &template)
        default:
            throw HubError(
                .badRequest,
                "a template has body, headers, expiry and tags; its body can not be removed."
            )
        }
    }

    // MARK: Values

    private static func setText(
        _ operation: Operation,
        _ name: String,
        in object: inout JSONObject
    ) throws(HubError) {
        guard operation.kind != .remove else {
            object[name] = nil
            return
        }
        guard let text = operation.value?.stringValue else {
            throw HubError(.badRequest, "'value' must be a string.")
        }
        object[name] = .string(text)
    }

    /// SDKs send every value as text, also objects and arrays.
    private static func structure(_ operation: Operation) throws(HubError) -> JSONValue {
        switch operation.value {
        case .string(let text)?:
            do throws(JSONError) { return try JSONValue(parsing: Array(text.utf8)) } catch {
                throw HubError(.badRequest, "'value' is not JSON: \(error).")
            }
        case let value?: return value
        case nil: throw HubError(.badRequest, "'value' is missing.")
        }
    }

    private static func applyTags(
        _ operation: Operation,
        _ path: ArraySlice<String>,
        to object: inout JSONObject
    ) throws(HubError) {
        var tags = object["tags"]?.arrayValue ?? []
        func add(_ value: JSONValue) {
            if !tags.contains(value) { tags.append(value) }
        }
        func remove(_ tag: String) {
            tags.removeAll { $0.stringValue?.lowercased() == tag.lowercased() }
        }
        switch (path.count, operation.kind) {
        case (0, .remove): tags = []
        case (0, _):
            if operation.kind == .replace { tags = [] }
            switch operation.value {
            case .string(let text)? where text.utf8.first == UInt8(ascii: "["):
                for tag in try structure(operation).arrayValue ?? [] { add(tag) }
            case .string(let text)?: add(.string(try HubTag(text).text))
            case .array(let items)?: for tag in items { add(tag) }
            default: throw HubError(.badRequest, "'value' must be a tag, or an array of tags.")
            }
        case (1, .remove): remove(path[path.startIndex])
        case (1, _): add(.string(try HubTag(path[path.startIndex]).text))
        default: throw HubError(.badRequest, "a tag has no parts.")
        }
        object["tags"] = tags.isEmpty ? nil : .array(tags)
    }

    /// An object of strings: all of it, or one member.
    private static func applyStrings(
        _ operation: Operation,
        _ path: ArraySlice<String>,
        _ name: String,
        to object: inout JSONObject
    ) throws(HubError) {
        guard path.count <= 1 else {
            throw HubError(.badRequest, "'\(name)' holds strings, which have no parts.")
        }
        guard let key = path.first else {
            object[name] = operation.kind == .remove ? nil : try structure(operation)
            return
        }
        var members = object[name]?.objectValue ?? JSONObject()
        try setText(operation, key, in: &members)
        object[name] = members.isEmpty ? nil : .object(members)
    }

    /// An object of objects: all of it, one of them, or a part of one.
    private static func applyObjects(
        _ operation: Operation,
        _ path: ArraySlice<String>,
        _ name: String,
        to object: inout JSONObject,
        _ applyPart: (Operation, ArraySlice<String>, inout JSONObject) throws(HubError) -> Void
    ) throws(HubError) {
        guard let key = path.first else {
            object[name] = operation.kind == .remove ? nil : try structure(operation)
            return
        }
        var members = object[name]?.objectValue ?? JSONObject()
        let rest = path.dropFirst()
        if rest.isEmpty {
            members[key] = operation.kind == .remove ? nil : try structure(operation)
        } else {
            guard var part = members[key]?.objectValue else {
                throw HubError(.badRequest, "there is no '\(key)' in \(name).")
            }
            try applyPart(operation, rest, &part)
            members[key] = .object(part)
        }
        object[name] = members.isEmpty ? nil : .object(members)
    }
}

import CTidingsExpat

extension XMLElement {
    /// Reads one document with expat. Document type declarations are refused, so no entity of the sender's
    /// can expand. The encoding is UTF-8 whatever the declaration says (the .NET SDK declares utf-16 over
    /// UTF-8 bytes), unless a byte order mark says otherwise.
    package init(parsing bytes: [UInt8], limits: XMLLimits = XMLLimits()) throws(XMLError) {
        guard bytes.count <= limits.byteCountMax else {
            throw XMLError(
                reason: "The document has \(bytes.count) bytes, at most \(limits.byteCountMax) are allowed",
                line: 1,
                column: 1
            )
        }
        let hasUTF16Mark = bytes.starts(with: [0xFE, 0xFF]) || bytes.starts(with: [0xFF, 0xFE])
        guard let parser = XML_ParserCreateNS(hasUTF16Mark ? nil : "UTF-8", separator) else {
            throw XMLError(reason: "Out of memory", line: 1, column: 1)
        }
        defer { XML_ParserFree(parser) }
        let builder = XMLTreeBuilder(parser: parser, depthMax: limits.depthMax)
        // The builder outlives the parse: `withExtendedLifetime` below holds it.
        XML_SetUserData(parser, Unmanaged.passUnretained(builder).toOpaque())
        installCallbacks(on: parser)
        let status = withExtendedLifetime(builder) {
            bytes.withUnsafeBytes {
                XML_Parse(parser, $0.baseAddress?.assumingMemoryBound(to: CChar.self), Int32($0.count), 1)
            }
        }
        guard status == XML_STATUS_OK, builder.failure == nil, let root = builder.root else {
            let text =
                XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "unknown error"
            throw XMLError(
                reason: builder.failure ?? "The XML is not well-formed (\(text))",
                line: Int(XML_GetCurrentLineNumber(parser)),
                column: Int(XML_GetCurrentColumnNumber(parser)) + 1
            )
        }
        self = root
    }
}

/// Stands between namespace and local name in expat's names; no XML name or URI holds it.
private let separator: XML_Char = 0x0C

/// Collects expat's events into a tree. Used by one parse on one thread.
private final class XMLTreeBuilder {
    let parser: XML_Parser
    let depthMax: Int
    var open: [XMLElement] = []
    var root: XMLElement?
    var failure: String?
    private var pending = ""

    init(parser: XML_Parser, depthMax: Int) {
        self.parser = parser
        self.depthMax = depthMax
    }

    static func from(_ context: UnsafeMutableRawPointer?) -> XMLTreeBuilder? {
        context.map { Unmanaged<XMLTreeBuilder>.fromOpaque($0).takeUnretainedValue() }
    }

    func fail(_ reason: String) {
        failure = failure ?? reason
        XML_StopParser(parser, XML_Bool(XML_FALSE))
    }

    func name(_ raw: UnsafePointer<XML_Char>) -> XMLElement.Name {
        let text = String(cString: raw)
        guard let split = text.utf8.firstIndex(of: UInt8(bitPattern: separator)) else { return .init(text) }
        return .init(String(text[text.index(after: split)...]), in: String(text[..<split]))
    }

    func start(
        _ rawName: UnsafePointer<XML_Char>,
        _ rawAttributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?
    ) {
        flushText()
        guard open.count < depthMax else { return fail("Nested deeper than \(depthMax) levels") }
        var attributes: [XMLElement.Name: String] = [:]
        var cursor = rawAttributes
        while let pair = cursor, let attributeName = pair[0], let value = pair[1] {
            attributes[name(attributeName)] = String(cString: value)
            cursor = pair + 2
        }
        open.append(XMLElement(name: name(rawName), attributes: attributes, children: []))
    }

    func end() {
        flushText()
        guard let element = open.popLast() else { return }
        if open.isEmpty {
            root = element
        } else {
            open[open.count - 1].children.append(.element(element))
        }
    }

    /// expat reports text in pieces, a line or an entity at a time; they are joined when an element begins or ends.
    func append(_ text: String) {
        if !open.isEmpty { pending += text }
    }

    private func flushText() {
        guard !pending.isEmpty, !open.isEmpty else { return }
        open[open.count - 1].children.append(.text(pending))
        pending = ""
    }
}

private func installCallbacks(on parser: XML_Parser) {
    XML_SetElementHandler(
        parser,
        { context, name, attributes in
            guard let name else { return }
            XMLTreeBuilder.from(context)?.start(name, attributes)
        },
        { context, _ in XMLTreeBuilder.from(context)?.end() }
    )
    XML_SetCharacterDataHandler(parser) { context, text, count in
        guard let text else { return }
        let bytes = UnsafeRawBufferPointer(start: text, count: Int(count))
        XMLTreeBuilder.from(context)?.append(String(decoding: bytes, as: UTF8.self))
    }
    XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in
        XMLTreeBuilder.from(context)?.fail("Document type declarations are not allowed")
    }
}

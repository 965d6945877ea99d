/// One element of an XML document, with names resolved to their namespaces.
package struct XMLElement: Equatable, Sendable {
    package struct Name: Hashable, Sendable {
        package var namespace: String
        package var local: String

        package init(_ local: String, in namespace: String = "") {
            self.local = local
            self.namespace = namespace
        }
    }

    package enum Node: Equatable, Sendable {
        case element(XMLElement)
        /// Character data and CDATA sections, joined.
        case text(String)
    }

    package var name: Name
    package var attributes: [Name: String]
    package var children: [Node]

    /// The child elements.
    package var elements: [XMLElement] {
        children.compactMap { if case .element(let element) = $0 { element } else { nil } }
    }

    /// The character data of this element itself, not of its children.
    package var text: String {
        children.reduce(into: "") { if case .text(let text) = $1 { $0 += text } }
    }

    /// The first child element with that local name, in any namespace.
    package func first(_ local: String) -> XMLElement? { elements.first { $0.name.local == local } }

    package static let schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"

    /// True for `i:nil="true"`.
    package var isNil: Bool {
        let value = attributes[Name("nil", in: Self.schemaInstance)]
        return value == "true" || value == "1"
    }
}

/// Why a text is not the XML that was asked for, and where.
package struct XMLError: Error, Equatable, Sendable, CustomStringConvertible {
    package let reason: String
    package let line: Int
    package let column: Int

    package var description: String { "\(reason) at line \(line), column \(column)" }
}

package struct XMLLimits: Sendable {
    package var byteCountMax = 1 << 20
    package var depthMax = 64

    package init() {}
}

/// Escaping for XML that is written by hand, where element order and the absence of white space matter.
package enum XMLText {
    /// Text or attribute value with `& < > "` and line ends escaped. Characters that XML 1.0 forbids
    /// (section 2.2) are replaced by U+FFFD, since no escape can carry them.
    package static func escaped(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\r": result += "&#13;"
            case "\n": result += "&#10;"
            case "\t": result += "&#9;"
            case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// A CDATA section; `]]>` inside is split over two sections.
    package static func cdata(_ text: String) -> String {
        var body = ""
        var rest = text[...]
        while let range = rest.firstRange(of: "]]>") {
            body += rest[..<range.lowerBound] + "]]]]><![CDATA[>"
            rest = rest[range.upperBound...]
        }
        return "<![CDATA[" + body + rest + "]]>"
    }

    /// True when every scalar may stand in an XML 1.0 document.
    package static func isAllowed(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy {
            switch $0 {
            case "\t", "\n", "\r": true
            case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}": false
            default: true
            }
        }
    }
}

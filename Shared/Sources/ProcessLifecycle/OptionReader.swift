/// A command line that cannot be understood, with what is allowed.
package struct OptionError: Error, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// The options of an operator's command: `--name value` or `--name=value`, some repeatable, and what is left.
package struct OptionReader {
    package private(set) var values: [String: [String]] = [:]
    package private(set) var rest: [String] = []

    /// - Parameter known: Option names; a name that ends in `!` is a switch.
    package init(_ arguments: [String], known: [String]) throws(OptionError) {
        let switches = Set(known.filter { $0.hasSuffix("!") }.map { String($0.dropLast()) })
        let names = Set(known.map { $0.hasSuffix("!") ? String($0.dropLast()) : $0 })
        var index = 0
        while index < arguments.count {
            let argument = arguments[index]
            index += 1
            guard argument.hasPrefix("--"), argument.utf8.count > 2 else {
                rest.append(argument)
                continue
            }
            let parts = argument.dropFirst(2).split(
                separator: "=",
                maxSplits: 1,
                omittingEmptySubsequences: false
            )
            let name = String(parts[0])
            guard names.contains(name) else {
                throw OptionError(
                    "--\(name) is not known. Known are \(names.sorted().map { "--" + $0 }.joined(separator: ", "))"
                )
            }
            if switches.contains(name) {
                values[name, default: []].append("true")
            } else if parts.count == 2 {
                values[name, default: []].append(String(parts[1]))
            } else if index < arguments.count {
                values[name, default: []].append(arguments[index])
                index += 1
            } else {
                throw OptionError("--\(name) needs a value")
            }
        }
    }

    package subscript(name: String) -> String? { values[name]?.last }
    package func has(_ name: String) -> Bool { values[name] != nil }

    /// Refuses arguments beyond `count`, so that a word in the wrong place is not passed over.
    package func expect(atMost count: Int) throws(OptionError) {
        guard rest.count <= count else {
            throw OptionError("'\(rest[count])' is one argument too many")
        }
    }

    /// Refuses options that mean nothing beside `other`.
    package func refuse(_ names: [String], with other: String) throws(OptionError) {
        for name in names where has(name) {
            throw OptionError("--\(name) does not go with \(other)")
        }
    }

    /// A number of at least 1; nil when the option is absent.
    package func count(_ name: String) throws(OptionError) -> Int? {
        guard let text = self[name] else { return nil }
        guard let count = Int(text), count > 0 else {
            throw OptionError("--\(name) '\(text)' is not a number of at least 1")
        }
        return count
    }
}

/// What ties together everything that one request causes, from the app back end over hub and gateway to the device: the
/// trace-id of W3C Trace Context (https://www.w3.org/TR/trace-context/#trace-id), 32 lower-case hex digits, not all zero.
package struct TraceID: Hashable, Sendable, CustomStringConvertible {
    package let text: String

    /// The one that the current task works for. Child tasks inherit it; logs name it; requests to our own services carry it.
    @TaskLocal package static var current: TraceID?

    package init?(_ text: String) {
        guard text.utf8.count == 32, text.utf8.contains(where: { $0 != UInt8(ascii: "0") }),
            text.utf8.allSatisfy({
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            })
        else { return nil }
        self.text = text
    }

    /// Reads a `traceparent` header of any version (section 3.2: later ones begin alike).
    package init?(parent header: String?) {
        guard let parts = header?.split(separator: "-", omittingEmptySubsequences: false), parts.count >= 4,
            parts[0].utf8.count == 2, parts[0] != "ff", parts[2].utf8.count == 16
        else { return nil }
        self.init(String(parts[1]))
    }

    /// Nil for what is no GUID.
    package init?(guid: String) { self.init(guid.lowercased().split(separator: "-").joined()) }

    /// A `traceparent` header. We keep no spans: the parent-id only has to be there and not zero.
    package var parentHeader: String { "00-\(text)-\(text.prefix(15))1-01" }
    package var description: String { text }
}

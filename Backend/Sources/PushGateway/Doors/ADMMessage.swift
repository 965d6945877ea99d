import HTTPMessages
import JSONBytes
import PushCredentials

/// The body of a message to ADM, checked (Amazon: "Sending a message", "Message payload").
struct ADMMessage: Sendable {
    /// Amazon's words for what is wrong.
    enum Fault: String, Error {
        case invalidData = "InvalidData"
        case invalidConsolidationKey = "InvalidConsolidationKey"
        case invalidExpiration = "InvalidExpiration"
        case invalidChecksum = "InvalidChecksum"
        case messageTooLarge = "MessageTooLarge"
    }

    /// A newer message with the same key replaces one that waits.
    let consolidationKey: String?
    /// How long the message is kept.
    let life: Duration

    /// Names and values of the data together.
    static let dataByteCountMax = 6144
    private static let keyCountMax = 64
    private static let lifeDefault = 604_800
    private static let lifeRange = 60...2_678_400

    init(_ body: [UInt8]) throws(Fault) {
        guard case .object(let object)? = try? JSONValue(parsing: body),
            case .object(let data)? = object["data"]
        else { throw .invalidData }
        var pairs: [(name: String, value: String)] = []
        for member in data.members {
            guard case .string(let value) = member.value else { throw .invalidData }
            pairs.append((member.name, value))
        }
        guard pairs.reduce(0, { $0 + $1.name.utf8.count + $1.value.utf8.count }) <= Self.dataByteCountMax
        else { throw .messageTooLarge }
        switch object["consolidationKey"] {
        case nil: consolidationKey = nil
        case .string(let key)? where !key.isEmpty && key.count <= Self.keyCountMax: consolidationKey = key
        default: throw .invalidConsolidationKey
        }
        guard let seconds = object["expiresAfter"].map({ $0.integerValue }) ?? Self.lifeDefault,
            Self.lifeRange.contains(seconds)
        else { throw .invalidExpiration }
        life = .seconds(seconds)
        if let priority = object["priority"], priority != "normal", priority != "high" { throw .invalidData }
        if let checksum = object["md5"], checksum.stringValue != Self.checksum(pairs) {
            throw .invalidChecksum
        }
    }

    /// The Base64 MD5 of `name:value`, sorted by name and joined by commas.
    static func checksum(_ pairs: [(name: String, value: String)]) -> String {
        let sorted = pairs.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        let text = sorted.map { "\($0.name):\($0.value)" }.joined(separator: ",")
        return Base64.encode(Digests.md5(Array(text.utf8)))
    }
}

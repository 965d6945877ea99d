package import HTTPMessages

/// The addresses of Azure Resource Manager that concern notification hubs, api-version 2017-04-01 (protocol reference, section 9.3). Fixed words
/// compare without case. Any subscription and resource group will do: a server has one namespace.
package enum ARMRoute: Equatable, Sendable {
    /// A namespace, or a hub in it.
    package enum Owner: Equatable, Sendable {
        case namespace(String)
        case hub(String, in: String)
    }

    case operations
    case checkNamespace
    case namespaces
    case resource(Owner)
    case hubs(in: String)
    case checkHub(in: String)
    case rules(Owner)
    case rule(Owner, String)
    case listKeys(Owner, String)
    case regenerateKeys(Owner, String)
    case debugSend(Owner)
    case credentials(Owner)

    /// Nil for another address.
    package init?(_ target: RequestTarget) {
        let words = target.segments
        let lower = words.map { $0.lowercased() }
        if lower == ["providers", "microsoft.notificationhubs", "operations"] {
            self = .operations
            return
        }
        guard let start = lower.firstIndex(of: "providers"), lower.first == "subscriptions",
            start == 2 || start == 4,
            start == 2 || lower[2] == "resourcegroups", lower.count > start + 2,
            lower[start + 1] == "microsoft.notificationhubs"
        else { return nil }
        let rest = Array(words[(start + 2)...])
        let kinds = Array(lower[(start + 2)...])
        if start == 2, kinds == ["checknamespaceavailability"] {
            self = .checkNamespace
            return
        }
        guard kinds[0] == "namespaces" else { return nil }
        guard rest.count > 1 else {
            self = .namespaces
            return
        }
        guard start == 4 else { return nil }
        if kinds.count > 3, kinds[2] == "notificationhubs" {
            guard let found = Self.inside(.hub(rest[3], in: rest[1]), rest, kinds, 4) else { return nil }
            self = found
        } else if kinds.count == 3, kinds[2] == "notificationhubs" {
            self = .hubs(in: rest[1])
        } else if kinds.count == 3, kinds[2] == "checknotificationhubavailability" {
            self = .checkHub(in: rest[1])
        } else {
            guard let found = Self.inside(.namespace(rest[1]), rest, kinds, 2) else { return nil }
            self = found
        }
    }

    private static func inside(
        _ owner: Owner,
        _ words: [String],
        _ kinds: [String],
        _ start: Int
    ) -> ARMRoute? {
        switch kinds.count - start {
        case 0: return .resource(owner)
        case 1 where kinds[start] == "authorizationrules": return .rules(owner)
        case 1 where kinds[start] == "debugsend": return .debugSend(owner)
        case 1 where kinds[start] == "pnscredentials": return .credentials(owner)
        case 2 where kinds[start] == "authorizationrules": return .rule(owner, words[start + 1])
        case 3 where kinds[start] == "authorizationrules" && kinds[start + 2] == "listkeys":
            return .listKeys(owner, words[start + 1])
        case 3 where kinds[start] == "authorizationrules" && kinds[start + 2] == "regeneratekeys":
            return .regenerateKeys(owner, words[start + 1])
        default: return nil
        }
    }
}

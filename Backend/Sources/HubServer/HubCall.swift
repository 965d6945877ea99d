import HTTPMessages
import HTTPServing
import HubAPI
import HubCore
import TidingsModels

/// One request to one hub.
struct HubCall {
    let request: HTTPRequest
    let hub: Hub
    let authorizer: Authorizer
    let namespacePolicies: [AccessPolicy]
    let now: Timestamp

    var address: RequestAddress { RequestAddress(request.head, hub: hub.name) }
    var target: RequestTarget { request.target }

    /// - Throws: ``HubError`` `.unauthorized` when the token does not give the right.
    @discardableResult
    func authorize(_ right: AccessRights) throws(HubError) -> RegistrationWriter {
        let policy = try authorizer.check(
            request.head,
            right,
            policies: hub.settings.policies + namespacePolicies,
            of: "the hub '\(hub.name)'",
            now: now
        )
        return RegistrationWriter(policy.rights, hub.listenMode)
    }

    /// The error for a method that the address does not have.
    func methodNotAllowed(_ allowed: String) -> HubError {
        .methodNotAllowed(request.method, at: "at '\(target.rawPath)'", allowed: allowed)
    }
}

/// Absolute addresses as the client sees this server, with the query of its request.
struct RequestAddress {
    enum Entity {
        case registrationID(RegistrationID)
        case registration(RegistrationID)
        case message(NotificationID)
        case scheduledMessage(NotificationID)
        case job(String)
    }

    let origin: String
    private let hub: String
    private let target: RequestTarget

    init(_ head: HTTPRequestHead, hub: String) {
        origin = "\(head.scheme)://\(head.authority.isEmpty ? "localhost" : head.authority)"
        self.hub = hub
        target = head.target
    }

    /// The hub's own address.
    var hubURL: String { origin + HubRoute.hub(hub).path }
    var requestURL: String { origin + target.raw }

    /// The request's address with another continuation token.
    func nextPage(token: String) -> String {
        let kept = target.rawQuery.dropFirst().split(separator: "&").filter {
            !$0.lowercased().hasPrefix("continuationtoken=")
        }
        return origin + target.rawPath + "?" + (kept + ["continuationtoken=\(token)"]).joined(separator: "&")
    }

    func url(_ entity: Entity) -> String {
        let path =
            switch entity {
            case .registrationID(let id): HubRoute.registrationIDs(hub: hub).path + "/\(id)"
            case .registration(let id): HubRoute.registration(hub: hub, id: id.text).path
            case .message(let id): HubRoute.message(hub: hub, id: id.text).path
            case .job(let id): HubRoute.job(hub: hub, id: id).path
            case .scheduledMessage(let id): HubRoute.scheduledMessage(hub: hub, id: id.text).path
            }
        return origin + path + target.rawQuery
    }
}

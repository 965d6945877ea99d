import TidingsModels

/// Hands messages of Google's doors to the mailbox: to one handle, or to all that a condition matches.
struct FCMDelivery: Sendable {
    let mailbox: any Mailbox
    let time: any TimeSource
    /// Handles of one topic message that are written at a time.
    private static let fanOutMax = 64

    struct Content: Sendable {
        var id: String
        var payload: [UInt8]
        var priority: String?
        var collapseKey: String?
        var lifetime: Duration
        /// Set by a hub of ours.
        var deliveryID: String?
    }

    func message(_ content: Content, _ handle: PlatformHandle) -> GatewayMessage {
        var headers = ["message-id": content.id]
        headers["priority"] = content.priority
        headers["collapse-key"] = content.collapseKey
        return GatewayMessage(
            handle: handle,
            data: content.payload,
            headers: headers,
            expires: content.lifetime > .zero ? time.now + content.lifetime : nil,
            collapseKey: content.collapseKey,
            deliveryID: content.deliveryID
        )
    }

    /// On disk for every device that matches when it returns. A device that takes no more misses it, as at Google.
    func deliver(_ content: Content, _ condition: FCMCondition, _ post: @escaping PostMessage) async throws {
        let handles = try await handles(condition)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, handle) in handles.enumerated() {
                if index >= Self.fanOutMax { _ = try await group.next() }
                group.addTask { _ = try await post(message(content, handle)) }
            }
            try await group.waitForAll()
        }
    }

    private func handles(_ condition: FCMCondition) async throws -> [PlatformHandle] {
        var members: [String: Set<PlatformHandle>] = [:]
        for topic in condition.topics { members[topic] = Set(try await mailbox.subscribers(of: topic)) }
        // With a `!` also devices in none of the topics may match.
        let candidates =
            condition.matches { _ in false }
            ? try await mailbox.liveHandles(.fcmV1)
            : Array(members.values.reduce(into: Set()) { $0.formUnion($1) })
        return candidates.filter { handle in condition.matches { members[$0]?.contains(handle) ?? false } }
    }
}

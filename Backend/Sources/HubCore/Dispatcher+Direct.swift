import TidingsModels

/// The handles of a direct send, numbered from 0 in their order.
struct HandleAudience: Audience {
    let count: Int
    /// It holds no number of a registration, so none of them has to wait for it.
    var change: Int64 { .max }
    var serialized: [UInt8] { [] }

    func contains(_ number: UInt32) -> Bool { number < UInt32(clamping: count) }

    func numbers(after: UInt32?, countMax: Int) -> [UInt32] {
        let start = after.map { Int($0) + 1 } ?? 0
        guard start < count else { return [] }
        return (start..<min(count, start + countMax)).map { UInt32($0) }
    }
}

extension Dispatcher {
    /// What is to be sent to some handles of a direct send. A handle that came before, among all of them, is skipped.
    nonisolated func plan(
        _ send: PendingSend,
        _ handles: [PlatformHandle],
        _ numbers: [UInt32]
    ) throws -> Plan {
        var renderer = try DispatchRenderer(
            send.notification,
            expression: nil,
            hasLegacyGoogle: senders[.gcm] != nil
        )
        var first: [PlatformHandle: Int] = [:]
        for (index, handle) in handles.enumerated() where first[handle] == nil { first[handle] = index }
        var plan = Plan(units: [], skipped: [:], missing: [])
        var good: [StoredRegistration] = []
        for number in numbers where Int(number) < handles.count {
            let handle = handles[Int(number)]
            guard first[handle] == Int(number) else {
                plan.skipped[handle.platform, default: [:]][.skipped, default: 0] += 1
                continue
            }
            let target = Self.target(handle, number)
            do throws(HubError) {
                _ = try PlatformHandle(handle.text, platform: handle.platform, keys: handle.keys)
                good.append(target)
            } catch {
                let refusal = PayloadRefusal(outcome: .badChannel, reason: error.message)
                plan.units.append(
                    RenderUnit(platform: handle.platform, payload: .failure(refusal), targets: [target])
                )
            }
        }
        if let target = good.first {
            let key = renderer.key(target.registration)
            let payload = renderer.payload(key, for: target.registration)
            plan.units.append(RenderUnit(platform: key.platform, payload: payload, targets: good))
        }
        return plan
    }

    /// A target that stands in no store; its delivery id follows from the handle.
    private static func target(_ handle: PlatformHandle, _ number: UInt32) -> StoredRegistration {
        StoredRegistration(
            number: number,
            change: 0,
            registration: Registration(
                id: RegistrationID(unchecked: handle.text),
                etag: 0,
                expires: .never,
                updated: Timestamp(milliseconds: 0),
                content: RegistrationContent(handle: handle)
            ),
            hasLowerSibling: false
        )
    }

    /// The registrations of handles that a direct send found dead.
    nonisolated func registrations(
        of targets: [(StoredRegistration, Timestamp?)]
    ) async throws -> [(StoredRegistration, Timestamp?)] {
        var found: [(StoredRegistration, Timestamp?)] = []
        for (target, asOf) in targets {
            found += try await store.siblings(target.registration.content.handle).map { ($0, asOf) }
        }
        return found
    }
}

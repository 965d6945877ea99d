package import TidingsModels

/// A registration with its place in the store.
package struct StoredRegistration: Sendable, Equatable {
    /// Dense, unique in its hub; reused only when no live send could still mean the old owner.
    package var number: UInt32
    /// The hub's change sequence at the last write.
    package var change: Int64
    package var registration: Registration
    /// True when a registration with a lower number has the same handle.
    package var hasLowerSibling: Bool
    /// Made with a key that has Manage. Records from before this was stored count as not.
    package var isManaged: Bool
    /// Set for a registration that stands for an installation.
    package var slot: InstallationSlot?

    package init(
        number: UInt32,
        change: Int64,
        registration: Registration,
        hasLowerSibling: Bool,
        isManaged: Bool = false,
        slot: InstallationSlot? = nil
    ) {
        self.slot = slot
        self.number = number
        self.change = change
        self.registration = registration
        self.hasLowerSibling = hasLowerSibling
        self.isManaged = isManaged
    }
}

package struct RegistrationPage: Sendable {
    package var registrations: [Registration]
    /// The number behind which the next page begins; nil on the last page.
    package var next: UInt32?

    package init(registrations: [Registration], next: UInt32?) {
        self.registrations = registrations
        self.next = next
    }
}

/// Which registrations a list shows.
package enum RegistrationFilter: Sendable, Equatable {
    case all
    /// Equal handles, of one platform or of any.
    case handle(String, Platform?)
    case tag(HubTag)
}

/// Where a hub's registrations survive. Writes are on disk, and in the index, when a call returns.
package protocol RegistrationStore: Sendable {
    /// Creates or replaces, in one transaction with the checks of `condition` and `writer`. Who made it first stays known.
    /// A registration that stands for an installation can only be written as it is.
    func put(
        _ id: RegistrationID,
        _ content: RegistrationContent,
        _ condition: EntityCondition,
        by writer: RegistrationWriter,
        expires: Timestamp,
        now: Timestamp
    ) async throws -> Registration
    func delete(
        _ id: RegistrationID,
        _ condition: EntityCondition,
        by writer: RegistrationWriter
    ) async throws
    /// Nil also for one that has expired.
    func registration(_ id: RegistrationID, now: Timestamp) async throws -> Registration?
    /// Those that have not expired, ordered by number.
    func registrations(
        _ filter: RegistrationFilter,
        after: UInt32?,
        countMax: Int,
        now: Timestamp
    ) async throws -> RegistrationPage
    /// Makes, replaces or deletes an installation and the registrations that stand for it, in one transaction.
    /// Their ids stay as long as their slot does.
    ///
    /// - Parameter change: From what there is to what is to be, nil for nothing.
    func changeInstallation(
        _ id: String,
        by writer: RegistrationWriter,
        now: Timestamp,
        newID: @escaping @Sendable () -> RegistrationID,
        _ change: @escaping @Sendable (Installation?) throws -> Installation?
    ) async throws
    /// Nil also for one that has expired.
    func installation(_ id: String, now: Timestamp) async throws -> Installation?
    /// How many registrations there are, and how many handles they name.
    func registrationCount() async throws -> (registrations: Int, devices: Int)
    /// Forgets registrations and installations that expired; returns how many.
    func removeExpired(now: Timestamp) async throws -> Int
    /// The registrations that still exist, ordered by number.
    func stored(_ numbers: [UInt32]) async throws -> [StoredRegistration]
    /// Every registration of a handle, ordered by number.
    func siblings(_ handle: PlatformHandle) async throws -> [StoredRegistration]
    /// Removes a registration whose handle is dead, unless it was written after `change`. That of an installation takes those of
    /// the same channel with it, and the installation notes that its channel has expired.
    func removeDead(_ number: UInt32, change: Int64) async throws -> Bool
    /// Gives a registration the handle that its device has now, unless it was written after `change`. That of an installation takes
    /// the others of the same channel along, and the installation has the new one.
    func replaceHandle(
        _ number: UInt32,
        change: Int64,
        with handle: PlatformHandle,
        now: Timestamp
    ) async throws -> Bool
}

/// What an index knows of a registration.
package struct IndexEntry: Sendable, Equatable {
    package enum Kind: Sendable, Hashable { case native(Platform), template }
    package var kind: Kind
    package var tags: [HubTag]

    package init(_ content: RegistrationContent) {
        kind = content.template == nil ? .native(content.handle.platform) : .template
        tags = content.tags
    }
}

/// One committed change of a registration.
package struct IndexChange: Sendable {
    package var number: UInt32
    package var old: IndexEntry?
    package var new: IndexEntry?
    package var change: Int64

    package init(number: UInt32, old: IndexEntry?, new: IndexEntry?, change: Int64) {
        self.number = number
        self.old = old
        self.new = new
        self.change = change
    }
}

/// Which registrations match. A cache that is rebuilt from the store.
package protocol AudienceIndex: Sendable {
    func apply(_ change: IndexChange)
    /// Every registration of the kind that matches; it may hold more, so each is checked against its record.
    func resolve(_ kind: IndexEntry.Kind, _ expression: TagExpression?) -> any Audience
    /// An audience that was stored.
    func audience(serialized: [UInt8], change: Int64) -> (any Audience)?
}

/// The registration numbers of one send.
package protocol Audience: Sendable {
    var count: Int { get }
    /// The change sequence that the index had reached.
    var change: Int64 { get }
    func contains(_ number: UInt32) -> Bool
    /// Up to `countMax` numbers above `after`, ascending.
    func numbers(after: UInt32?, countMax: Int) -> [UInt32]
    var serialized: [UInt8] { get }
}

/// A send that is not finished.
package struct PendingSend: Sendable {
    package var id: NotificationID
    package var notification: HubNotification
    package var tags: String
    package var enqueued: Timestamp
    /// Set once it was resolved.
    package var audience: (serialized: [UInt8], change: Int64)?
    /// Blocks whose outcomes are stored.
    package var finishedBlocks: Set<Int>
    /// When to begin; nil for at once.
    package var scheduled: Timestamp?
    /// What its log lines and requests name.
    package var trace: TraceID?
    /// From here its time budget counts.
    package var begins: Timestamp { max(enqueued, scheduled ?? enqueued) }
    /// The devices of a direct send, which asks no registration; nil for a send to tags.
    package var handles: [PlatformHandle]?
    /// True when no block is left, and only targets that wait for another try may be.
    package var isDispatched = false

    package init(
        id: NotificationID,
        notification: HubNotification,
        tags: String,
        enqueued: Timestamp,
        scheduled: Timestamp? = nil,
        trace: TraceID? = nil,
        audience: (serialized: [UInt8], change: Int64)? = nil,
        finishedBlocks: Set<Int> = []
    ) {
        self.id = id
        self.notification = notification
        self.tags = tags
        self.enqueued = enqueued
        self.scheduled = scheduled
        self.trace = trace
        self.audience = audience
        self.finishedBlocks = finishedBlocks
    }
}

package typealias OutcomeCounts = [Platform: [Outcome: Int]]

/// A target that waits for its next try.
package struct RetryTarget: Sendable, Equatable {
    package var number: UInt32
    package var platform: Platform
    /// Tries so far.
    package var attemptCount: Int
    package var due: Timestamp

    package init(number: UInt32, platform: Platform, attemptCount: Int, due: Timestamp) {
        self.number = number
        self.platform = platform
        self.attemptCount = attemptCount
        self.due = due
    }
}

/// What a try of some targets came to: each is in the outcomes or among the retries.
package struct AttemptResult: Sendable {
    package var outcomes: OutcomeCounts
    package var retries: [RetryTarget]
    /// Targets that their platforms did not accept, up to ``TargetFailure/countMax`` of them.
    package var failures: [TargetFailure] = []

    package init(outcomes: OutcomeCounts = [:], retries: [RetryTarget] = []) {
        self.outcomes = outcomes
        self.retries = retries
    }

    mutating func add(_ outcome: Outcome, _ platform: Platform, count: Int = 1) {
        outcomes[platform, default: [:]][outcome, default: 0] += count
    }

    mutating func add(_ other: AttemptResult) {
        for (platform, counts) in other.outcomes {
            for (outcome, count) in counts { add(outcome, platform, count: count) }
        }
        retries += other.retries
        failures += other.failures.prefix(max(0, TargetFailure.countMax - failures.count))
    }
}

/// How far a send is once its blocks are done.
package enum SendProgress: Sendable, Equatable {
    case ended(NotificationState, targetCount: Int)
    /// Targets wait; the first is due then.
    case waits(until: Timestamp)
}

/// Where accepted sends survive until every target has its outcome, and their outcomes afterwards.
package protocol SendQueue: Sendable {
    /// On disk when it returns.
    /// - Throws: ``HubError`` `.throttled` for a scheduled send too many.
    func enqueue(_ send: PendingSend) async throws
    /// Ends a scheduled send whose time has not come; false when there is none.
    func cancel(_ id: NotificationID, now: Timestamp) async throws -> Bool
    /// Sends to go on with now, the longest due first.
    func due(
        by now: Timestamp,
        excluding: Set<NotificationID>,
        countMax: Int
    ) async throws -> [NotificationID]
    /// When the next one is due; nil when none is.
    func nextDue(after now: Timestamp) async throws -> Timestamp?
    /// How many sends are not over: those to go on with now, and those whose time comes later.
    func liveCounts(now: Timestamp) async throws -> (due: Int, later: Int)
    /// A send with what is left of it; nil once it is over.
    func pending(_ id: NotificationID) async throws -> PendingSend?
    func begin(_ id: NotificationID, _ audience: any Audience, now: Timestamp) async throws
    /// Stores a block's outcomes, its retries and its finished mark together.
    func finish(_ id: NotificationID, block: Int, _ result: AttemptResult) async throws
    /// Notes that every block is finished, and ends the send when no target waits.
    func finishBlocks(_ id: NotificationID, now: Timestamp) async throws -> SendProgress
    /// Targets that are due, the longest due first.
    func retries(_ id: NotificationID, dueBy: Timestamp, countMax: Int) async throws -> [RetryTarget]
    /// Stores what another try of these targets came to, and ends the send when none waits any more.
    func settle(
        _ id: NotificationID,
        _ numbers: [UInt32],
        _ result: AttemptResult,
        now: Timestamp
    ) async throws -> SendProgress
    func details(_ id: NotificationID) async throws -> NotificationDetails?
    /// Stores a send that was never queued and is over, with its outcomes.
    func record(
        _ send: PendingSend,
        _ state: NotificationState,
        _ result: AttemptResult,
        now: Timestamp
    ) async throws
    /// What the platforms did not accept of one send, in order.
    func failures(of id: NotificationID) async throws -> [TargetFailure]
    /// What they did not accept in a span of time, in order.
    func failures(from: Timestamp, until: Timestamp, countMax: Int) async throws -> [TargetFailure]
    /// Forgets sends that ended before a moment; returns how many.
    func removeEnded(before: Timestamp) async throws -> Int
}

/// One device of a batch.
package struct PushTarget: Sendable, Equatable {
    package var handle: PlatformHandle
    /// A UUID that is the same whenever this target of this send is tried again.
    package var deliveryID: String

    package init(handle: PlatformHandle, deliveryID: String) {
        self.handle = handle
        self.deliveryID = deliveryID
    }
}

/// How a platform answered for one target.
package enum TargetAnswer: Sendable, Equatable {
    case accepted
    /// Accepted, and the device has another handle from now on.
    case replaced(by: PlatformHandle)
    /// The handle is dead for good, as of a moment if the platform says so.
    case dead(Outcome, reason: String, asOf: Timestamp?)
    /// Worth another try; the platform may say when.
    case retry(Outcome, reason: String, after: Duration?)
    case refused(Outcome, reason: String)
}

/// Hands payloads to one platform.
package protocol PlatformSender: Sendable {
    /// Origins besides the platform's own that a channel may lead to.
    var gatewayOrigins: Set<String> { get }
    /// One answer for each target, in order. Never fails: trouble is an answer.
    func send(_ payload: PlatformPayload, to targets: [PushTarget]) async -> [TargetAnswer]
}

extension PlatformSender {
    package var gatewayOrigins: Set<String> { [] }
}

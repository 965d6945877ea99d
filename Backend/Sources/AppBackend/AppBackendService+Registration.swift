import HTTPMessages
import HTTPServing
import HubAPI
import HubClient
import JSONBytes
import TidingsModels

/// `/api/register`: devices and the users they belong to.
///
/// The back end changes only registrations that it made itself: native ones, listed in its store. Templates and
/// registrations that a device made at the hub are left alone.
extension AppBackendService {
    private static let bodyByteCountMax = 64 << 10

    func register(_ request: HTTPRequest, _ user: AuthenticatedUser) async throws -> HTTPResponse {
        let body = try await request.body.collect(upTo: Self.bodyByteCountMax)
        if let handle = request.target.parameter("handle"), !handle.isEmpty {
            return try await registrationID(handle, user)
        }
        if !Self.isBlank(body) { return try await registerInstallation(body, user) }
        return Self.quoted(try await atHub { try await $0.newRegistrationID() }.text)
    }

    /// Exactly one pair of quotes and nothing after it: the tutorials' client cuts off the first and last character.
    private static func quoted(_ id: String) -> HTTPResponse {
        HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=utf-8"],
            body: JSONValue.string(id).serialized()
        )
    }

    // MARK: By handle (notify users)

    /// The id of this handle's registration: the first that the back end made, else a new one.
    private func registrationID(_ text: String, _ user: AuthenticatedUser) async throws -> HTTPResponse {
        let handle = try DeviceHandleText.stored(text)
        return try await registrationLock.withLock([Self.key(handle)]) {
            try await self.lockedRegistrationID(handle, user)
        }
    }

    private func lockedRegistrationID(
        _ handle: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        let ours = try await ownNativeRegistrations(handle)
        guard let kept = ours.first else {
            // It is the caller's with the PUT; until then knowing it is all there is to own.
            return Self.quoted(try await atHub { try await $0.newRegistrationID() }.text)
        }
        for surplus in ours.dropFirst() { try await remove(surplus.id.text) }
        if try await store.owned(id: kept.id.text)?.user != user.name {
            // A new login on the same device: the previous user's tags go at once, not with the PUT that may follow.
            try await put(kept.id, kept.content.handle, tags: [], user, installationID: nil)
        }
        return Self.quoted(kept.id.text)
    }

    /// Native registrations of a handle that this back end made, in the hub's order.
    private func ownNativeRegistrations(_ handle: String) async throws -> [Registration] {
        let found = try await atHub { try await $0.registrations(handle: handle) }
        var ours: [Registration] = []
        for registration in found where registration.content.template == nil {
            if try await store.owned(id: registration.id.text) != nil { ours.append(registration) }
        }
        return ours
    }

    func putRegistration(
        _ id: String,
        _ request: HTTPRequest,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        let device = try BackendJSON.deviceRegistration(
            try await request.body.collect(upTo: Self.bodyByteCountMax)
        )
        guard let platform = Platform(appName: device.platform) else {
            throw HubError(
                .badRequest,
                "The platform '\(device.platform)' is not known. Known are mpns, wns, apns, fcm (also gcm, fcmv1), browser and adm."
            )
        }
        let handle = try DeviceHandleText.handle(device.handle, platform)
        let tags = try await checkedTags(device.tags, user)
        guard let registrationID = RegistrationID(id) else {
            throw HubError(
                .gone,
                "The registration id '\(id)' is not one that a hub issues. Ask for a new one with POST /api/register."
            )
        }
        try await registrationLock.withLock([id, Self.key(handle.text)]) {
            try await self.checkOwnership(registrationID, handle, user)
            try await self.put(registrationID, handle, tags: tags, user, installationID: nil)
        }
        return HTTPResponse(200)
    }

    /// An id belongs to its user. Another user may take it over with the device itself: the same handle.
    private func checkOwnership(
        _ id: RegistrationID,
        _ handle: PlatformHandle,
        _ user: AuthenticatedUser
    ) async throws {
        if let known = try await store.owned(id: id.text) {
            guard known.user == user.name || known.handle == Self.key(handle.text) else {
                throw HubError(.forbidden, "The registration '\(id)' belongs to another user.")
            }
            return
        }
        // An id that the back end does not know: a new one, or a registration that is none of its business.
        if let existing = try await atHub({ try await $0.registration(id) }) {
            guard existing.content.template == nil, existing.content.handle == handle else {
                throw HubError(.forbidden, "The registration '\(id)' was not made by this back end.")
            }
        }
    }

    private func checkedTags(_ texts: [String], _ user: AuthenticatedUser) async throws -> [HubTag] {
        var tags: [HubTag] = []
        for text in texts {
            let tag = try HubTag(text)
            let lower = text.lowercased()
            guard !lower.hasPrefix("username:"), !lower.hasPrefix("from:"), !lower.hasPrefix("installation:")
            else {
                throw HubError(
                    .badRequest,
                    "The tag '\(text)' is reserved: only the back end sets username:, from: and installation:."
                )
            }
            guard await tagPolicy.allows(tag, for: user) else {
                throw HubError(.forbidden, "The user '\(user.name)' may not have the tag '\(text)'.")
            }
            if !tags.contains(tag) { tags.append(tag) }
        }
        return tags
    }

    /// Writes the registration at the hub and its ownership here, and removes every other one that the back end made for
    /// the handle: one device, one registration, one user.
    private func put(
        _ id: RegistrationID,
        _ handle: PlatformHandle,
        tags: [HubTag],
        _ user: AuthenticatedUser,
        installationID: String?
    ) async throws {
        var all = tags + [try HubTag.username(user.name)]
        if let installationID { all.append(try HubTag("installation:" + installationID)) }
        // Ownership first: a crash in between leaves an owner without a registration, never a registration without one.
        let before = try await store.owned(id: id.text)
        try await store.own(
            OwnedRegistration(
                id: id.text,
                user: user.name,
                platform: handle.platform,
                handle: Self.key(handle.text),
                installationID: installationID
            )
        )
        let content = RegistrationContent(handle: handle, tags: all)
        do { _ = try await atHub { try await $0.put(id, content) } } catch {
            // The hub still has the old owner's tags: a later attempt must see that.
            if let before { try await store.own(before) } else { try await store.disown(id.text) }
            throw error
        }
        for other in try await store.owned(handle: Self.key(handle.text)) where other.id != id.text {
            try await remove(other.id)
        }
    }

    /// Handles compare without case, since apps print hex in either.
    private static func key(_ handle: String) -> String { handle.lowercased() }

    func deleteRegistration(_ id: String, _ user: AuthenticatedUser) async throws -> HTTPResponse {
        try await registrationLock.withLock([id, "installation:" + id]) {
            var known = try await self.store.owned(id: id)
            if known == nil { known = try await self.store.owned(installationID: id) }
            guard let known, known.user == user.name else {
                throw HubError(.notFound, "There is no registration '\(id)' of yours.")
            }
            try await self.remove(known.id)
        }
        return HTTPResponse(200)
    }

    private func remove(_ id: String) async throws {
        if let id = RegistrationID(id) { _ = try await atHub { try await $0.delete(id) } }
        try await store.disown(id)
    }

    // MARK: By installation (register the current user)

    private func registerInstallation(_ body: [UInt8], _ user: AuthenticatedUser) async throws -> HTTPResponse
    {
        let request = try BackendJSON.installationRegistration(body)
        guard let platform = Platform(appName: request.platform) else {
            throw HubError(
                .badRequest,
                "The platform '\(request.platform)' is not known. Known are ios, apns, wns, mpns, fcm, browser and adm."
            )
        }
        let handle = try DeviceHandleText.handle(request.deviceToken, platform)
        _ = try HubTag("installation:" + request.installationID)
        let id = try await registrationLock.withLock([
            "installation:" + request.installationID, Self.key(handle.text),
        ]) {
            let known = try await self.store.owned(installationID: request.installationID)
            let id: RegistrationID
            if let text = known?.id, let kept = RegistrationID(text) {
                id = kept
            } else {
                id = try await self.atHub { try await $0.newRegistrationID() }
            }
            try await self.put(id, handle, tags: [], user, installationID: request.installationID)
            return id
        }
        return HTTPResponse(
            200,
            ["Content-Type": "application/json; charset=utf-8"],
            body: JSONValue.object([
                "registrationId": .string(id.text), "platform": .string(request.platform),
                "instId": .string(request.installationID),
                "deviceToken": .string(handle.text),
            ]).serialized()
        )
    }
}

/// Handles as apps write them: the token or channel, for a browser the JSON of its subscription.
enum DeviceHandleText {
    static func handle(_ text: String, _ platform: Platform) throws(HubError) -> PlatformHandle {
        switch platform {
        case .browser: try SubscriptionJSON.read(text, path: "handle")
        case .apns: try PlatformHandle(try cleaned(text), platform: platform)
        default: try PlatformHandle(text, platform: platform)
        }
    }

    /// What the hub finds a handle by, when the platform is not said.
    static func stored(_ text: String) throws(HubError) -> String {
        guard text.utf8.count <= PlatformHandle.byteCountMax else {
            throw HubError(
                .badRequest,
                "The handle has \(text.utf8.count) bytes, at most \(PlatformHandle.byteCountMax) are allowed."
            )
        }
        return try known(text)
    }

    private static func known(_ text: String) throws(HubError) -> String {
        text.hasPrefix("{") && text.contains("endpoint")
            ? try SubscriptionJSON.read(text, path: "handle").text : try cleaned(text)
    }

    /// Device tokens as old iOS code prints them: drops `<`, `>` and blanks; refuses the form that newer systems print instead of
    /// the token.
    private static func cleaned(_ text: String) throws(HubError) -> String {
        let lower = text.lowercased()
        guard !lower.hasPrefix("{length") else {
            throw HubError(
                .badRequest,
                "The handle '\(text.prefix(40))…' is the description of a data object, not a device token. On iOS 13 and later format "
                    + "the token's bytes as hexadecimal."
            )
        }
        return lower.hasPrefix("<") || lower.contains(" ")
            ? text.filter { $0 != "<" && $0 != ">" && $0 != " " } : text
    }
}

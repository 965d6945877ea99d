import HTTPMessages
import HTTPServing
import HubAPI
import HubClient
import JSONBytes
import ProcessLifecycle
import PushTelemetry
import TidingsModels

/// `/api/notifications`: texts to a user, and items that devices fetch.
extension AppBackendService {
    private static let messageByteCountMax = 64 << 10

    func notify(_ request: HTTPRequest, _ user: AuthenticatedUser) async throws -> HTTPResponse {
        let pns = request.target.parameter("pns")
        let to = request.target.parameter("to_tag")
        switch (pns, to) {
        case (let pns?, let to?): return try await notifyUser(request, pns, to, user)
        case (nil, .some): throw HubError(.badRequest, "The parameter 'pns' is missing: wns, apns or fcm.")
        case (.some, nil):
            throw HubError(.badRequest, "The parameter 'to_tag' is missing: the name of the user to notify.")
        case (nil, nil): return try await storeItem(request, user)
        }
    }

    // MARK: Notify users

    private func notifyUser(
        _ request: HTTPRequest,
        _ pns: String,
        _ to: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        guard let platform = Platform(appName: pns),
            !["android", "ios", "apple", "windows"].contains(pns.lowercased())
        else {
            throw HubError(
                .badRequest,
                "pns '\(pns)' is not known. Known are wns, apns, fcm, gcm, fcmv1 and browser."
            )
        }
        guard platform != .mpns else {
            throw HubError(
                .badRequest,
                "pns=mpns cannot be notified: Microsoft shut the Windows Phone push service down."
            )
        }
        let tag = try await recipient(to, user)
        let message = try MessageBody.read(try await request.body.collect(upTo: Self.messageByteCountMax))
        let notification = try PlatformMessages.text("From \(user.name): \(message)", platform)
        try PlatformMessages.checkSize(notification)
        let id = try await atHub { try await $0.send(notification, tags: tag.text) }
        return HTTPResponse(200, ["Tidings-Notification-Id": id?.text ?? ""])
    }

    /// One user's tag: names are data, never part of an expression.
    private func recipient(_ name: String, _ user: AuthenticatedUser) async throws -> HubTag {
        let tag: HubTag
        do throws(HubError) {
            guard !name.isEmpty else { throw HubError(.badRequest, "the name is empty") }
            tag = try HubTag.username(name)
        } catch {
            throw HubError(
                .badRequest,
                "'\(name)' is not a user name: one name of ASCII letters and digits and _ @ # . : - is expected, no expression."
            )
        }
        guard await sendPolicy.allows(from: user, to: name) else {
            throw HubError(.forbidden, "The user '\(user.name)' may not notify '\(name)'.")
        }
        return tag
    }

    // MARK: Secure and rich

    /// The body decides: an image or sound is a rich push, JSON with `payload` a secure one, JSON with `richType` a rich
    /// one, nothing the tutorials' sample.
    private func storeItem(_ request: HTTPRequest, _ user: AuthenticatedUser) async throws -> HTTPResponse {
        let contentType = request.fields["Content-Type"] ?? ""
        if contentType.lowercased().hasPrefix("image/") || contentType.lowercased().hasPrefix("audio/") {
            return try await upload(request, contentType, user)
        }
        let body = try await request.body.collect(upTo: Self.messageByteCountMax)
        if Self.isBlank(body) { return try await sample(user) }
        let object = try BackendJSON.object(body)
        func text(_ name: String) throws(HubError) -> String? {
            let value = object.member(ignoringCase: name) ?? .null
            guard value == .null || value.stringValue != nil else {
                throw HubError(.badRequest, "The member '\(name)' must be a string.")
            }
            return value.stringValue
        }
        let to = (try text("to") ?? user.name).lowercased()
        if let payload = try text("payload") {
            return try await sendSecure(payload, to: to, user)
        }
        guard let type = try text("richType") else {
            throw HubError(
                .badRequest,
                "The JSON body needs 'payload' (a secure push) or 'richType' with 'content' (a rich one)."
            )
        }
        guard !type.isEmpty, type.utf8.count <= 64, type.utf8.allSatisfy(HubTag.isLegal) else {
            throw HubError(
                .badRequest,
                "richType '\(type)' must be a word of up to 64 letters, digits and _ @ # . : -."
            )
        }
        guard !["img", "sound"].contains(type) else {
            throw HubError(
                .badRequest,
                "A picture or sound is sent as the body itself, with its Content-Type (\(MediaTypes.list))."
            )
        }
        guard let content = try text("content"), !content.isEmpty else {
            throw HubError(.badRequest, "The member 'content' must be a string that is not empty.")
        }
        let message = try text("message") ?? ""
        let media = type == "url" ? "text/uri-list" : "text/plain; charset=utf-8"
        return try await sendRich(.text(content, type: media), type: type, message: message, to: to, user)
    }

    /// Nothing but the blanks of JSON (RFC 8259 section 2).
    static func isBlank(_ body: [UInt8]) -> Bool {
        body.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    }

    private func sample(_ user: AuthenticatedUser) async throws -> HTTPResponse {
        switch configuration.sample {
        case .secure: return try await sendSecure("Secure confirmation.", to: user.name, user)
        case .rich:
            let picture = configuration.samplePicture ?? (SamplePicture.png, "image/png")
            let writer = try FileWriter(uploadPath(newFileName()))
            try writer.append(picture.bytes)
            return try await sendFile(
                writer,
                picture.type,
                message: "Check this image out!",
                to: user.name,
                user
            )
        }
    }

    private func sendSecure(
        _ payload: String,
        to: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        _ = try await recipient(to, user)
        let id = try await store(.secret(payload), type: "", message: "", owner: to)
        return try await push(to: to) { PlatformMessages.secure(id, $0) }
    }

    private func sendRich(
        _ content: StoredItem.Content,
        type: String,
        message: String,
        to: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        _ = try await recipient(to, user)
        try Self.checkRichSize(message, type)
        let id = try await store(content, type: type, message: message, owner: to)
        return try await push(to: to) { PlatformMessages.rich(id, message: message, type: type, $0) }
    }

    private static func checkRichSize(_ message: String, _ type: String) throws(HubError) {
        for platform in PlatformMessages.all {
            try PlatformMessages.checkSize(
                PlatformMessages.rich(.max, message: message, type: type, platform)
            )
        }
    }

    private func store(
        _ content: StoredItem.Content,
        type: String,
        message: String,
        owner: String
    ) async throws -> Int32 {
        let payload: String = if case .secret(let text) = content { text } else { "" }
        let item = StoredItem(
            notification: TidingsModels.Notification(
                id: 0,
                message: message,
                richType: type,
                payload: payload,
                read: false
            ),
            owner: owner,
            content: content
        )
        let (id, dropped) = try await store.add(item, expires: time.now + configuration.itemLife) {
            // Positive 31-bit, since the tutorials' client reads an int; random, since the owner check alone decides.
            Int32.random(in: 1 ... .max)
        }
        try await remove(files: dropped)
        return id
    }

    /// Sends to the user's devices on every platform. One that cannot be reached does not stop the others; it is named in
    /// the answer. 200 when at least one took it.
    private func push(to user: String, _ make: (Platform) -> HubNotification) async throws -> HTTPResponse {
        let tag = try HubTag.username(user)
        var ids: [String] = []
        var failures: [(Platform, HubError)] = []
        for platform in PlatformMessages.all {
            let notification = make(platform)
            do {
                let id = try await hub.send(notification, tags: tag.text)
                ids.append("\(platform.appName)=\(id?.text ?? "")")
            } catch let error as HubError { failures.append((platform, Self.mapped(error))) }
        }
        for (platform, error) in failures {
            log.warning(
                "push_not_sent",
                ["platform": .string(platform.appName), "reason": .string(error.message)]
            )
        }
        if ids.isEmpty, let (_, error) = failures.first { throw error }
        var response = HTTPResponse(200, ["Tidings-Notification-Id": ids.joined(separator: ",")])
        if !failures.isEmpty {
            response.fields["Tidings-Not-Sent"] = failures.map(\.0.appName).joined(separator: ",")
        }
        return response
    }

    // MARK: Uploads

    /// Streams the body into a file. Its type must be one that devices show, and what the bytes really are.
    private func upload(
        _ request: HTTPRequest,
        _ contentType: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        guard let type = MediaTypes.known(contentType) else {
            throw HubError(
                .badRequest,
                "The Content-Type '\(contentType)' is not taken. Taken are \(MediaTypes.list)."
            )
        }
        let countMax = configuration.uploadByteCountMax
        let tooLarge = HubError(.tooLarge, "The upload is longer than \(countMax) bytes.")
        if let declared = request.body.declaredByteCount, declared > countMax { throw tooLarge }
        let message = request.target.parameter("message") ?? ""
        let to = (request.target.parameter("to") ?? user.name).lowercased()
        _ = try await recipient(to, user)
        try Self.checkRichSize(message, MediaTypes.richType(type))
        let writer = try FileWriter(uploadPath(newFileName()))
        var beginning: [UInt8] = []
        var isChecked = false
        while let bytes = try await request.body.next() {
            guard writer.byteCount + bytes.count <= countMax else { throw tooLarge }
            if !isChecked {
                beginning += bytes
                if beginning.count >= MediaTypes.beginningByteCount {
                    try Self.check(type, beginning)
                    isChecked = true
                }
            }
            try writer.append(bytes)
        }
        if !isChecked { try Self.check(type, beginning) }
        return try await sendFile(writer, type, message: message, to: to, user)
    }

    private static func check(_ type: String, _ beginning: [UInt8]) throws(HubError) {
        guard MediaTypes.isPlausible(type, beginning: beginning) else {
            throw HubError(.badRequest, "The body does not begin like \(type).")
        }
    }

    private func sendFile(
        _ writer: FileWriter,
        _ type: String,
        message: String,
        to: String,
        _ user: AuthenticatedUser
    ) async throws -> HTTPResponse {
        try await blocking { try writer.finish() }
        do {
            return try await sendRich(
                .file(name: writer.name, type: type),
                type: MediaTypes.richType(type),
                message: message,
                to: to,
                user
            )
        } catch {
            if try await !store.refers(to: writer.name) { try await remove(files: [writer.name]) }
            throw error
        }
    }

    private func newFileName() -> String { Hex.encode((0..<16).map { _ in UInt8.random(in: .min ... .max) }) }
    private func uploadPath(_ name: String) -> String { configuration.uploadFolder + "/" + name }

    func remove(files: [String]) async throws {
        if files.isEmpty { return }
        let folder = configuration.uploadFolder
        try await blocking { for file in files { Files.remove(folder + "/" + file) } }
    }

    // MARK: Fetching

    func content(_ id: String, _ user: AuthenticatedUser, marksRead: Bool) async throws -> HTTPResponse {
        // Foreign and unknown look alike.
        let unknown = HubError(.notFound, "There is no notification '\(id)' of yours.")
        guard let number = Int32(id),
            let item = try await store.read(number, owner: user.name, now: time.now, marksRead: marksRead)
        else { throw unknown }
        switch item.content {
        case .secret:
            return HTTPResponse(
                200,
                ["Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"],
                body: BackendJSON.json(item.notification).serialized()
            )
        case .text(let text, let type):
            return HTTPResponse(200, ["Content-Type": type, "Cache-Control": "no-store"], text: text)
        case .file(let name, let type):
            guard let reader = try FileReader(uploadPath(name)) else { throw unknown }
            var response = HTTPResponse(
                200,
                ["Content-Type": type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"]
            )
            response.body = .stream(byteCount: reader.byteCount) { try reader.next() }
            return response
        }
    }
}

import HTTPMessages
import HubAPI
import JSONBytes
import TidingsModels

/// Which key signs a request.
enum Signer: Sendable { case namespace, listen, unknown }

/// A request, rebuilt from what was answered.
struct RebuiltRequest: Sendable {
    var method: String
    var resource: String
    var query: String
    var fields: HTTPFields = [:]
    var body: String?
    var signer = Signer.namespace
}

/// Finds the requests of a recording: the answers, the file's name and the calls around it tell them.
struct Rebuilder {
    private let recording: Recording
    /// ETags by recorded registration id.
    private var etags: [String: Int] = [:]
    /// Installations that were put.
    private var installations = Set<String>()
    /// Ours by the recorded ids.
    var ids: [String: String] = [:]

    init(_ recording: Recording) { self.recording = recording }

    mutating func request(_ index: Int) throws -> RebuiltRequest {
        let call = recording.calls[index]
        let words = call.resource.split(separator: "/").map(String.init)
        var request = RebuiltRequest(method: "GET", resource: call.resource, query: call.query)
        switch (words.first ?? "", words.count) {
        case ("", _): management(call, index, &request)
        case ("registrationids", 1): request.method = "POST"
        case ("registrations", 1):
            guard let body = call.body, call.contentType?.contains("type=entry") == true else { break }
            let registration = try RegistrationXML.readEntry(Array(body.utf8))
            etags[registration.id.text] = registration.etag
            (request.method, request.body) = ("POST", RegistrationXML.request(registration.content, id: nil))
        case ("registrations", 2): try registration(call, words[1], &request)
        case ("installations", 2): try installation(call, index, words[1], &request)
        case ("messages", _), ("schedulednotifications", 1): try send(call, words, &request)
        case ("jobs", 1):
            request.method = "POST"
            request.body = Self.job
        case ("jobs", 2): request.resource = "/jobs/" + (ids[words[1]] ?? words[1])
        default: break
        }
        return request
    }

    private mutating func registration(
        _ call: RecordedCall,
        _ id: String,
        _ request: inout RebuiltRequest
    ) throws {
        request.resource = "/registrations/" + (ids[id] ?? id)
        guard let body = call.body else {
            (request.method, request.fields) = ("DELETE", ["If-Match": "*"])
            return
        }
        guard call.status == 200 else { return }
        let registration = try RegistrationXML.readEntry(Array(body.utf8))
        // A read answers the ETag that is known; an update the next one.
        if etags[id] == registration.etag { return }
        request.method = "PUT"
        if etags[id] != nil, recording.name.hasPrefix("Update") { request.fields = ["If-Match": "*"] }
        request.body = RegistrationXML.request(registration.content, id: nil)
        etags[id] = registration.etag
    }

    private mutating func installation(
        _ call: RecordedCall,
        _ index: Int,
        _ id: String,
        _ request: inout RebuiltRequest
    ) throws {
        switch call.status {
        case 204: request.method = "DELETE"
        case 200 where call.body == nil:
            let later = recording.calls[index...].first { $0.target == call.target && $0.body != nil }
            var object = try JSONValue(parsing: Array((later?.body ?? "{}").utf8)).objectValue ?? JSONObject()
            object["expirationTime"] = nil
            let name = recording.name
            if installations.insert(id).inserted {
                request.method = "PUT"
                if name.contains("WithoutTags") { object["tags"] = nil }
                if name.contains("WithoutUserId") { object["userId"] = nil }
                if name.contains("RemoveUserId") || name.contains("UpdateUserId") {
                    object["userId"] = "an-earlier-user"
                }
                request.body = JSONValue.object(object).text
            } else {
                request.method = "PATCH"
                let operation: JSONValue =
                    if name.contains("RemoveUserId") {
                        .object(["op": "remove", "path": "/userId"])
                    } else if let user = object["userId"] {
                        .object([
                            "op": name.contains("Update") ? "replace" : "add", "path": "/userId",
                            "value": user,
                        ])
                    } else {
                        .object([
                            "op": "add", "path": "/tags",
                            "value": object["tags"]?.arrayValue?.first ?? "tag1",
                        ])
                    }
                request.body = JSONValue.array([operation]).text
            }
            request.fields = ["Content-Type": "application/json"]
        default: break
        }
    }

    private static let token = "62BCD3484834B7E2DC56733AC5509259230CC1BA82BA1AE7D06E91908A05A8FA"

    private func send(_ call: RecordedCall, _ words: [String], _ request: inout RebuiltRequest) throws {
        request.method = "POST"
        let formats: [(word: String, format: String, body: String)] = [
            ("Apple", "apple", #"{"aps":{"alert":"alert!"}}"#),
            ("Gcm", "gcm", #"{"data":{"message":"Message"}}"#),
            ("Fcm", "gcm", #"{"data":{"message":"Message"}}"#),
            ("Adm", "adm", #"{"data":{"key1":"value1"}}"#),
            ("Baidu", "baidu", #"{"title":"Title","description":"Description"}"#),
            (
                "Mpns", "windowsphone",
                #"<?xml version="1.0" encoding="utf-16"?><wp:Notification xmlns:wp="WPNotification"><wp:Toast><wp:Text1>x</wp:Text1></wp:Toast></wp:Notification>"#
            ),
            (
                "Windows", "windows",
                #"<toast><visual><binding template="ToastText01"><text id="1">x</text></binding></visual></toast>"#
            ),
            ("Template", "template", #"{"prop1":"value1"}"#),
        ]
        let found = formats.first { recording.name.contains($0.word) } ?? formats[0]
        request.fields = ["ServiceBusNotification-Format": found.format]
        request.body = found.body
        if words.first == "schedulednotifications" {
            request.fields["ServiceBusNotification-ScheduleTime"] = "2018-11-08T00:18:38"
        }
        if recording.name.contains("ByInstallationId") {
            request.fields["ServiceBusNotification-Tags"] = "$InstallationId:{123456}"
        }
        if recording.name.contains("ByUserId") {
            request.fields["ServiceBusNotification-Tags"] = "$UserId:{user1}"
        }
        if recording.name.contains("ListenOnly") { request.signer = .listen }
        if words.last == "$batch" {
            let part = "\r\nContent-Type: application/json\r\nContent-Disposition: inline; name="
            let boundary = "--nh-batch-multipart-boundary"
            request.fields["Content-Type"] = "multipart/mixed; boundary=\"nh-batch-multipart-boundary\""
            request.body =
                "\(boundary)\(part)notification\r\n\r\n\(found.body)\r\n\(boundary)\(part)devices\r\n\r\n[\"\(Self.token)\"]\r\n\(boundary)--\r\n"
        } else if call.query.contains("direct") {
            request.fields["ServiceBusNotification-DeviceHandle"] = Self.token
        }
    }

    // MARK: Management

    private static let job =
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/atom+xml;type=entry;charset=utf-8\"><NotificationHubJob "
        + "xmlns=\"http://schemas.microsoft.com/netservices/2010/10/servicebus/connect\"><Type>ImportCreateRegistrations</Type>"
        + "<OutputContainerUri>https://storage.example/c?sig=x</OutputContainerUri><ImportFileUri>https://storage.example/c/i.txt?sig=x</ImportFileUri>"
        + "</NotificationHubJob></content></entry>"

    private func management(_ call: RecordedCall, _ index: Int, _ request: inout RebuiltRequest) {
        let description = HubDescription(name: call.hub)
        switch call.status {
        case 201, 409: (request.method, request.body) = ("PUT", HubDescriptionXML.request(description))
        case 401:
            // First an unknown key on a create; then the hub's Listen key reads and changes; then unknown keys do.
            let isListen = call.body?.contains("Manage claim") == true
            request.signer = isListen ? .listen : .unknown
            if index == 0 { (request.method, request.body) = ("PUT", HubDescriptionXML.request(description)) }
            if index == recording.calls.count - 1 { request.method = "DELETE" }
        case 404: request.method = "DELETE"
        case 200 where call.body == nil: request.method = "DELETE"
        case 200 where call.body?.contains("<Status>") == true:
            var changed = description
            changed.isDisabled = true
            (request.method, request.body) = ("PUT", HubDescriptionXML.request(changed))
            request.fields = ["If-Match": "*"]
        default: break
        }
    }
}

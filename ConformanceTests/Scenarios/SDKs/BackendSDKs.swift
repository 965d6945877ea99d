import HTTPMessages
import HubAPI
import TidingsConformance
import TidingsModels
import Testing

/// The wire behaviour of the back ends' SDKs, as requests of our own (protocol reference, sections 2.4 and 11).
@Suite("SDKs of back ends")
struct BackendSDKs {
    // MARK: .NET

    /// The base type with `i:type`, nil members, one line.
    private func dotNetEntry(_ type: String, _ members: String) -> String {
        "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><RegistrationDescription i:type=\"\(type)\" xmlns=\"\(SDKBody.connect)\" "
            + "xmlns:i=\"\(SDKBody.instance)\"><ETag i:nil=\"true\"/><ExpirationTime i:nil=\"true\"/><RegistrationId i:nil=\"true\"/>\(members)"
            + "</RegistrationDescription></content></entry>"
    }

    @Test(
        ".NET: registrations by base type, ETags in quotes, channel filter for every platform, paging, deletion"
    )
    func dotNetRegistrations() async throws {
        try await World.run { world in
            var sdk = SDKSender(world: world, style: .dotNet)
            sdk.fields = [
                ("TrackingId", "0b6ab7b1-6f43-4a05-9fd7-3c5f1a7d33f0"),
                ("User-Agent", "NHub/2020-06 (api-origin=DotNetSdk;os=Unix;os-version=5.15)"),
            ]
            let entry = [("Content-Type", "application/atom+xml;type=entry;charset=utf-8")]
            let ids = try await sdk.send("POST", "/tidings/registrationids?api-version=2020-06", [], "")
            // The SDK demands exactly four segments of an absolute address.
            let location = try #require(ids.fields["Location"].flatMap { HTTPURL($0) })
            #expect(
                ids.status == 201 && location.target.prefix { $0 != "?" }.split(separator: "/").count == 3
            )
            #expect(ids.fields["TrackingId"] == "0b6ab7b1-6f43-4a05-9fd7-3c5f1a7d33f0")

            let created = try await sdk.send(
                "POST",
                "/tidings/registrations?api-version=2020-06",
                entry,
                dotNetEntry(
                    "FcmV1RegistrationDescription",
                    "<Tags>a,b</Tags><FcmV1RegistrationId>tok:1</FcmV1RegistrationId>"
                )
            )
            #expect(
                created.status == 200
                    && created.body.contains(
                        "<content type=\"application/xml\"><FcmV1RegistrationDescription xmlns="
                    )
            )
            let registration = try RegistrationXML.readEntry(Array(created.body.utf8))
            let path = "/tidings/registrations/\(registration.id)?api-version=2020-06"
            let template = dotNetEntry(
                "AppleTemplateRegistrationDescription",
                "<DeviceToken>\(SDKBody.token)</DeviceToken><BodyTemplate><![CDATA[{\"aps\":{\"alert\":\"$(m)\"}}]]></BodyTemplate><Expiry i:nil=\"true\"/>"
                    + "<TemplateName>t</TemplateName><Priority i:nil=\"true\"/><ApnsHeaders/>"
            )
            #expect(try await sdk.send("PUT", path, entry + [("If-Match", "\"7\"")], template).status == 412)
            let updated = try await sdk.send("PUT", path, entry + [("If-Match", "\"1\"")], template)
            #expect(updated.status == 200 && updated.fields["ETag"] == "W/\"2\"")
            let filter =
                "/tidings/registrations?api-version=2020-06&$filter=ChannelUri+eq+%27\(SDKBody.token.lowercased())%27&$top=100"
            #expect(
                try RegistrationXML.readFeed(Array(try await sdk.send("GET", filter).body.utf8)).map(\.id)
                    == [registration.id]
            )
            for _ in 0..<3 {
                let body = dotNetEntry(
                    "GcmRegistrationDescription",
                    "<GcmRegistrationId>g</GcmRegistrationId>"
                )
                #expect(
                    try await sdk.send("POST", "/tidings/registrations?api-version=2020-06", entry, body)
                        .status == 200
                )
            }
            // The token goes back as it came, without encoding.
            var count = 0
            var page = "/tidings/registrations?api-version=2020-06&$top=2"
            while true {
                let answer = try await sdk.send("GET", page)
                count += try RegistrationXML.readFeed(Array(answer.body.utf8)).count
                guard let token = answer.fields["X-MS-ContinuationToken"] else { break }
                page = "/tidings/registrations?api-version=2020-06&$top=2&continuationtoken=\(token)"
            }
            #expect(count == 4)
            let deleted = try await sdk.send("DELETE", path, [("If-Match", "*")])
            #expect(deleted.status == 200 && deleted.body.isEmpty)
            #expect(try await sdk.send("GET", path).status == 404)
        }
    }

    @Test(
        ".NET: installations with explicit nulls, patches as text, sends with utf-16 declared over UTF-8, test sends on every call"
    )
    func dotNetSends() async throws {
        try await World.run { world in
            let sdk = SDKSender(
                world: world,
                style: .dotNet,
                fields: [("TrackingId", "0b6ab7b1-6f43-4a05-9fd7-3c5f1a7d33f0")]
            )
            let json = [("Content-Type", "application/json; charset=utf-8")]
            let installation =
                #"{"installationId":"i","userId":null,"pushChannel":"ab12","pushChannelExpired":null,"platform":"apns","expirationTime":null,"tags":["a"],"templates":{}}"#
            let path = "/tidings/installations/i?api-version=2020-06&test"
            #expect(try await sdk.send("PUT", path, json, installation).status == 200)
            let patch =
                #"[{"op":"add","path":"/templates/t","value":"{\"body\":\"{\\\"aps\\\":{\\\"alert\\\":\\\"$(m)\\\"}}\"}"}]"#
            #expect(try await sdk.send("PATCH", path, json, patch).status == 200)
            #expect(try await sdk.send("GET", path).body.contains("\"t\":{"))
            #expect(try await sdk.send("DELETE", path).status == 204)
            let toast =
                "<?xml version=\"1.0\" encoding=\"utf-16\"?><toast><visual><binding template=\"ToastText01\"><text id=\"1\">å</text></binding></visual></toast>"
            let sent = try await sdk.send(
                "POST",
                "/tidings/messages?api-version=2020-06",
                [
                    ("ServiceBusNotification-Format", "windows"), ("ServiceBusNotification-Tags", "a||b"),
                    ("X-WNS-Type", "wns/toast"), ("Content-Type", "application/xml"),
                ],
                toast
            )
            #expect(
                sent.status == 201 && sent.fields["Location"]?.hasPrefix("http") == true && sent.body.isEmpty
            )
            let details = try await sdk.send("GET", "/tidings/messages/\(sent.id)?api-version=2020-06")
            #expect(
                details.status == 200
                    && details.body.contains("<NotificationId>\(sent.id)</NotificationId><Location>sb://")
            )
            let tested = try await sdk.send(
                "POST",
                "/tidings/messages?api-version=2020-06&test",
                [("ServiceBusNotification-Format", "template"), ("Content-Type", "application/json")],
                "{}"
            )
            #expect(
                tested.status == 201
                    && tested.body.contains(
                        "<Success>0</Success><Failure>0</Failure><Results i:nil=\"true\"/>"
                    )
            )
            let scheduled = try await sdk.send(
                "POST",
                "/tidings/schedulednotifications?api-version=2020-06",
                [
                    ("ServiceBusNotification-Format", "apple"),
                    ("ServiceBusNotification-Apns-Expiry", "12/24/2030 10:20:30"),
                    (
                        "ServiceBusNotification-ScheduleTime",
                        String((world.clock.now + .seconds(3600)).description.prefix(19))
                    ),
                ],
                #"{"aps":{"alert":"x"}}"#
            )
            #expect(scheduled.status == 201)
            #expect(
                try await sdk.send(
                    "DELETE",
                    "/tidings/schedulednotifications/\(scheduled.id)?api-version=2020-06"
                ).status == 200
            )
        }
    }

    // MARK: Java

    @Test(
        "Java, over HTTP/2: W/ ETags, form-encoded signatures over the whole address, Apple sends that lost their format"
    )
    func java() async throws {
        try await World.run { world in
            func call(
                _ method: String,
                _ path: String,
                _ fields: HTTPFields = [:],
                _ body: String? = nil
            ) async throws -> (Int, HTTPFields, String) {
                var fields = fields
                let connection = try world.fullConnection()
                fields["Authorization"] = SignatureStyle.java.header(
                    try world.hubURL + path,
                    keyName: connection.name,
                    key: connection.key,
                    expires: world.clock.now.seconds + 3600
                )
                let answer = try await world.request(
                    method,
                    try world.hubURL + path,
                    fields: fields,
                    body: body.map { Array($0.utf8) }
                )
                return (answer.status.code, answer.fields, answer.text)
            }
            let entry: HTTPFields = ["Content-Type": "application/atom+xml;type=entry;charset=utf-8"]
            let ids = try await call("POST", "/tidings/registrationids/?api-version=2020-06", [:], "")
            let id = try #require(ids.1["Location"]?.prefix { $0 != "?" }.split(separator: "/").last)
            let body =
                "<?xml version=\"1.0\" encoding=\"utf-8\"?><entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><AppleTemplateRegistrationDescription "
                + "xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\"><Tags>a, b</Tags><DeviceToken>\(SDKBody.token)</DeviceToken>"
                + "<BodyTemplate><![CDATA[{\"aps\":{\"alert\":\"$(m)\"}}]]></BodyTemplate></AppleTemplateRegistrationDescription></content></entry>"
            let path = "/tidings/registrations/\(id)?api-version=2020-06"
            #expect(try await call("PUT", path, entry, body).0 == 200)
            var conditional = entry
            conditional["If-Match"] = "W/\"1\""
            #expect(try await call("PUT", path, conditional, body).0 == 200)
            #expect(try await call("PUT", path, conditional, body).0 == 412)
            let read = try await call("GET", path)
            // Nothing but elements of the type, and a date that xsd:dateTime takes.
            #expect(
                read.0 == 200 && read.2.contains("<ExpirationTime>9999-12-31T23:59:59.999Z</ExpirationTime>")
            )
            let sent = try await call(
                "POST",
                "/tidings/messages?api-version=2020-06",
                [
                    "Content-Type": "application/json;charset=utf-8", "apns-push-type": "alert",
                    "ServiceBusNotification-Tags": "a || b",
                ],
                #"{"aps":{"alert":"x"}}"#
            )
            #expect(sent.0 == 201)
            let sentID = try #require(sent.1["Location"]?.prefix { $0 != "?" }.split(separator: "/").last)
            let details = try await call("GET", "/tidings/messages/\(sentID)?api-version=2020-06")
            #expect(details.2.contains("<TargetPlatforms>apple</TargetPlatforms>"))
            let hubs = try await call(
                "GET",
                "/$Resources/NotificationHubs/?api-version=2014-09&$skip=0&$top=2147483647"
            )
            #expect(hubs.0 == 401, "a hub's own key does not list hubs")
            #expect(try await call("DELETE", path, ["If-Match": "*"]).0 == 200)
            #expect(try await call("DELETE", path, ["If-Match": "*"]).0 == 404)
        }
    }

    // MARK: JavaScript and node

    @Test(
        "JavaScript: namespace signatures in upper-case hex, trailing slashes, a content type on DELETE, batches with blanks around the boundary"
    )
    func javaScript() async throws {
        try await World.run { world in
            let sdk = SDKSender(
                world: world,
                style: .javaScript,
                fields: [
                    ("x-ms-version", "2020-06"),
                    ("x-ms-azsdk-telemetry", "class=NotificationHubsServiceClient;method=x"),
                ]
            )
            let entry = [("Content-Type", "application/xml;type=entry;charset=utf-8")]
            let ids = try await sdk.send("POST", "/tidings/registrationIDs?api-version=2020-06", entry, "")
            #expect(ids.status == 201)
            let body =
                "<entry xmlns=\"http://www.w3.org/2005/Atom\"><updated>2027-01-01T00:00:00Z</updated><content type=\"application/xml\"><BrowserTemplateRegistrationDescription "
                + "xmlns=\"\(SDKBody.connect)\" xmlns:i=\"\(SDKBody.instance)\"><Tags>a</Tags><PushVariables>{\"k\":\"v\"}</PushVariables>"
                + "<Endpoint>https://push.example/1</Endpoint><Auth>x</Auth><P256DH>BPk</P256DH><BodyTemplate><![CDATA[{\"t\":\"$(m)\"}]]></BodyTemplate>"
                + "<TemplateName>n</TemplateName></BrowserTemplateRegistrationDescription></content></entry>"
            let path = "/tidings/registrations/\(ids.id)?api-version=2020-06"
            let put = try await sdk.send("PUT", path, entry, body)
            #expect(put.status == 200 && put.body.contains("<P256DH>BPk</P256DH><Auth>x</Auth>"))
            #expect(try await sdk.send("DELETE", path, entry + [("If-Match", "*")]).status == 200)
            let windows =
                "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"application/xml\"><WindowsTemplateRegistrationDescription xmlns=\"\(SDKBody.connect)\">"
                + "<ChannelUri>https://a.notify.windows.com/x</ChannelUri><BodyTemplate><![CDATA[<toast a=\"$(m)\"/>]]></BodyTemplate><TemplateName>n</TemplateName>"
                + "<WnsHeaders><WnsHeader><Header>X-WNS-Type</Header><Value>wns/toast</Value></WnsHeader></WnsHeaders></WindowsTemplateRegistrationDescription></content></entry>"
            #expect(
                try await sdk.send("POST", "/tidings/registrations?api-version=2020-06", entry, windows)
                    .status == 200
            )
            let sent = try await sdk.send(
                "POST",
                "/tidings/messages/?api-version=2020-06&direct=true",
                [
                    ("Content-Type", "application/json;charset=utf-8"),
                    ("ServiceBusNotification-Format", "apple"),
                    ("ServiceBusNotification-DeviceHandle", SDKBody.token),
                ],
                #"{"aps":{"alert":"x"}}"#
            )
            // The id is the third segment of the path.
            let location = try #require(sent.fields["Location"].flatMap { HTTPURL($0) })
            #expect(
                sent.status == 201 && location.target.split(separator: "/")[2].prefix { $0 != "?" } == sent.id
            )
            #expect(sent.fields["TrackingId"] != nil && sent.fields["x-ms-correlation-request-id"] != nil)
            let boundary = "nh-boundary-5f0c7c1e"
            let part = { (name: String, content: String) in
                "--\(boundary)\r\nContent-Type: application/json\r\nContent-Disposition: inline; name=\(name)\r\n\r\n\(content)\r\n"
            }
            let batch = try await sdk.send(
                "POST",
                "/tidings/messages/$batch?api-version=2020-06&direct=true",
                [
                    ("Content-Type", "multipart/mixed; boundary = \"\(boundary)\""),
                    ("ServiceBusNotification-Format", "apple"),
                ],
                part("notification", #"{"aps":{"alert":"x"}}"#) + part("devices", "[\"\(SDKBody.token)\"]")
                    + "--\(boundary)--"
            )
            #expect(batch.status == 201)
            let job = try await sdk.send("GET", "/tidings/jobs?api-version=2020-06")
            #expect(job.status == 200 && job.body.hasPrefix("<feed"))
        }
    }

    @Test("node azure-sb: old paths and versions, $skip, an expiry header of its own spelling")
    func node() async throws {
        try await World.run { world in
            let sdk = SDKSender(world: world, style: .node, fields: [("Accept-Charset", "UTF-8")])
            let body =
                "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><entry xmlns=\"http://www.w3.org/2005/Atom\"><updated>2027-01-01</updated><content type=\"application/xml\">"
                + "<AppleRegistrationDescription xmlns=\"\(SDKBody.connect)\"><Tags>a</Tags><DeviceToken>\(SDKBody.token)</DeviceToken></AppleRegistrationDescription></content></entry>"
            #expect(
                try await sdk.send(
                    "POST",
                    "/tidings/Registrations?api-version=2013-07",
                    [("content-type", "application/atom+xml;type=entry;charset=utf-8")],
                    body
                ).status == 200
            )
            let listed = try await sdk.send(
                "GET",
                "/tidings/tags/a/Registrations?$top=10&$skip=0&api-version=2013-07"
            )
            #expect(try RegistrationXML.readFeed(Array(listed.body.utf8)).count == 1)
            let sent = try await sdk.send(
                "POST",
                "/tidings/Messages?api-version=2013-07",
                [
                    ("Content-Type", "application/json;charset=utf-8"),
                    ("ServiceBusNotification-Format", "apple"), ("ServiceBusNotification-Tags", "a || b"),
                    ("ServiceBusNotification-ApnsExpiry", "2030-07-16T19:20+01:00"),
                ],
                #"{"aps":{"alert":"x"}}"#
            )
            #expect(sent.status == 201)
            #expect(
                try await sdk.send(
                    "PUT",
                    "/tidings/Installations/i",
                    [("content-type", "application/json")],
                    #"{"platform":"apns","pushChannel":"ab12"}"#
                ).status == 200
            )
        }
    }
}

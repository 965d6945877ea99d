import HTTPMessages
import HubAPI
import TidingsConformance
import TidingsModels
import Testing

/// The wire behaviour of the apps' SDKs, as requests of our own (protocol reference, sections 11.4 to 11.7).
@Suite("SDKs of apps")
struct MobileSDKs {
    @Test(
        "iOS legacy: filter, new id, upsert without If-Match, 410 for an id that is none, deletion; answers that its parser takes"
    )
    func appleLegacy() async throws {
        try await World.run { world in
            let sdk = SDKSender(
                world: world,
                style: .apple,
                fields: [
                    ("User-Agent", "NOTIFICATIONHUBS/2013-04(api-origin=IosSdk; os=iOS; os_version=9.0;)")
                ]
            )
            let type = [("Content-Type", "application/xml")]
            let filter =
                "/tidings/Registrations/?$filter=deviceToken+eq+'\(SDKBody.token)'&api-version=2013-04"
            let none = try await sdk.send("GET", filter, type)
            #expect(none.status == 200 && !none.body.contains("<entry"))
            let ids = try await sdk.send("POST", "/tidings/registrationids/?api-version=2013-04", type, "")
            #expect(ids.status == 201 && !ids.id.isEmpty)
            let body =
                "<entry xmlns=\"http://www.w3.org/2005/Atom\"><content type=\"text/xml\"><AppleTemplateRegistrationDescription xmlns:i=\"\(SDKBody.instance)\" "
                + "xmlns=\"\(SDKBody.connect)\"><Tags>World,Sports</Tags><DeviceToken>\(SDKBody.token)</DeviceToken>"
                + "<BodyTemplate><![CDATA[{\"aps\":{\"alert\":\"$(messageParam)\"}}]]></BodyTemplate><Expiry>0</Expiry><TemplateName>simpleAPNSTemplate</TemplateName>"
                + "</AppleTemplateRegistrationDescription></content></entry>"
            let put = try await sdk.send(
                "PUT",
                "/tidings/Registrations/\(ids.id)?api-version=2013-04",
                type,
                body
            )
            #expect(put.status == 200)
            // Text between elements would become part of the next value, and the date has exactly three digits.
            let start = try #require(put.body.firstRange(of: "<content")).lowerBound
            #expect(!put.body[start...].contains("> <") && !put.body.contains("\n"))
            #expect(put.body.contains("<ExpirationTime>9999-12-31T23:59:59.999Z</ExpirationTime>"))
            let listed = try await sdk.send("GET", filter, type)
            #expect(
                try RegistrationXML.readFeed(Array(listed.body.utf8)).first?.content.template?.name
                    == "simpleAPNSTemplate"
            )
            #expect(
                try await sdk.send("PUT", "/tidings/Registrations/not-an-id?api-version=2013-04", type, body)
                    .status == 410
            )
            let path = "/tidings/Registrations/\(ids.id)?api-version=2013-04"
            #expect(try await sdk.send("DELETE", path, type + [("If-Match", "*")]).status == 200)
            #expect(try await sdk.send("DELETE", path, type + [("If-Match", "*")]).status == 404)
        }
    }

    @Test("iOS v3: one PUT of a pretty-printed installation with a date of its own form")
    func apple() async throws {
        try await World.run { world in
            let sdk = SDKSender(world: world, style: .apple, fields: [("x-ms-version", "2020-06")])
            let body = """
                {
                  "installationId" : "5B1C-IOS",
                  "platform" : "apns",
                  "pushChannel" : "\(SDKBody.token.lowercased())",
                  "expirationTime" : "2031-06-12T08:05+0200",
                  "tags" : [
                    "country:SE"
                  ],
                  "userId" : "pomona",
                  "templates" : {
                    "headline" : {
                      "body" : "{\\"aps\\":{\\"alert\\":\\"$(m)\\"}}",
                      "tags" : [ ],
                      "headers" : { }
                    }
                  }
                }
                """
            let put = try await sdk.send(
                "PUT",
                "/tidings/installations/5B1C-IOS?api-version=2020-06",
                [("Content-Type", "application/json")],
                body
            )
            #expect(put.status == 200, "\(put.body)")
            let found = try await world.hub().installation("5B1C-IOS")
            #expect(found?.expires == Timestamp(parsing: "2031-06-12T06:05:00Z") && found?.userID == "pomona")
        }
    }

    @Test(
        "Android legacy: DOM-serialised entries with id and updated, its filter fields, both Google platforms in one feed"
    )
    func androidLegacy() async throws {
        try await World.run { world in
            let sdk = SDKSender(
                world: world,
                style: .android,
                fields: [("Content-Type", "application/atom+xml")]
            )
            for (platform, field, token) in [
                ("Gcm", "GcmRegistrationId", "a:1"), ("FcmV1", "FcmV1RegistrationId", "b:1"),
                ("Adm", "AdmRegistrationId", "amzn1.x"),
            ] {
                let filter =
                    "/tidings/Registrations/?$filter=\(field)+eq+%27\(PercentEncoding.encode(token))%27&api-version=2014-09"
                #expect(try await sdk.send("GET", filter).status == 200)
                let ids = try await sdk.send("POST", "/tidings/registrationids/?api-version=2014-09")
                #expect(ids.status == 201)
                let body =
                    "<entry xmlns=\"http://www.w3.org/2005/Atom\"><id>tidings/Registrations/\(ids.id)</id><updated>2027-01-01T00:00:00Z</updated><content type=\"application/xml\">"
                    + "<\(platform)RegistrationDescription xmlns:i=\"\(SDKBody.instance)\" xmlns=\"\(SDKBody.connect)\"><ETag></ETag><ExpirationTime></ExpirationTime>"
                    + "<RegistrationId>\(ids.id)</RegistrationId><Tags></Tags><\(field)>\(token)</\(field)></\(platform)RegistrationDescription></content></entry>"
                #expect(
                    try await sdk.send(
                        "PUT",
                        "/tidings/Registrations/\(ids.id)?api-version=2014-09",
                        [],
                        body
                    ).status == 200
                )
                let found = try RegistrationXML.readFeed(Array(try await sdk.send("GET", filter).body.utf8))
                #expect(found.map(\.id.text) == [ids.id], "\(platform)")
                // What was read is sent back, expiry and all.
                let again = body.replacing(
                    "<ExpirationTime></ExpirationTime>",
                    with: "<ExpirationTime>9999-12-31T23:59:59.999Z</ExpirationTime>"
                )
                #expect(
                    try await sdk.send(
                        "PUT",
                        "/tidings/Registrations/\(ids.id)?api-version=2014-09",
                        [],
                        again
                    ).status == 200
                )
                #expect(
                    try await sdk.send(
                        "DELETE",
                        "/tidings/Registrations/\(ids.id)?api-version=2014-09",
                        [("If-Match", "*")]
                    ).status == 200
                )
            }
        }
    }

    @Test("Android v1: one PUT whose templates repeat their names; exactly 200 with an empty body")
    func android() async throws {
        try await World.run { world in
            let sdk = SDKSender(world: world, style: .android, fields: [("x-ms-version", "2020-06")])
            for platform in ["gcm", "fcmv1"] {
                let template =
                    platform == "gcm"
                    ? "{\\\"data\\\":{\\\"m\\\":\\\"$(m)\\\"}}"
                    : "{\\\"message\\\":{\\\"data\\\":{\\\"m\\\":\\\"$(m)\\\"}}}"
                let body =
                    #"{"installationId":"droid-\#(platform)","platform":"\#(platform)","pushChannel":"c7:x","tags":["a"],"templates":{"t":{"name":"t","body":"\#(template)","headers":{},"tags":[]}},"#
                    + #""expirationTime":"2031-06-12T08:05+0000"}"#
                let put = try await sdk.send(
                    "PUT",
                    "/tidings/installations/droid-\(platform)?api-version=2020-06",
                    [("Content-Type", "application/json")],
                    body
                )
                #expect(put.status == 200 && put.body.isEmpty, "\(put.body)")
            }
            #expect(try await world.hub().registrations(handle: "c7:x").count == 4)
        }
    }
}

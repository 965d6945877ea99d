import HTTPMessages
import Testing
import TidingsModels

@testable import PushCredentials

@Suite("Web Push encryption and VAPID")
struct WebPushTests {
    private static func bytes(_ text: String) throws -> [UInt8] { try #require(Base64.decode(text)) }

    private static let plaintext = Array("When I grow up, I want to be a watermelon".utf8)
    private static let receiver = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
    private static let receiverPoint =
        "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    private static let auth = "BTBZMqHH6r4Tts7J_aSIgg"
    private static let sender = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
    private static let salt = "DGv6ra1nlYgDCS1FRnbzlw"
    private static let body =
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"

    @Test("RFC 8291 section 5 and appendix A, both ways, each step")
    func vector() throws {
        let pair = try P256KeyPair(scalar: Self.bytes(Self.receiver))
        #expect(Base64.encodeURL(pair.point) == Self.receiverPoint)
        let sender = try P256KeyPair(scalar: Self.bytes(Self.sender))
        #expect(
            Base64.encodeURL(try sender.agree(with: pair.point))
                == "kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs"
        )
        #expect(try pair.agree(with: sender.point) == sender.agree(with: pair.point))
        let auth = try Self.bytes(Self.auth)
        let target = try #require(WebPushMessage.Receiver(point: pair.point, auth: auth))
        let body = try WebPushMessage.encrypt(
            Self.plaintext,
            to: target,
            sender: sender,
            salt: Self.bytes(Self.salt)
        )
        #expect(Base64.encodeURL(body) == Self.body)
        #expect(try WebPushMessage.decrypt(body, with: pair, auth: auth) == Self.plaintext)
    }

    @Test("the draft's aesgcm with the same keys")
    func legacy() throws {
        let body = try Self.bytes(
            "4qwOLFm_mNy0vf1A8f3Bm6B5UD15y3aV_xZy14pixUhcPTIoZKHzq5i3dZ6PzqSMxBI_-VDUZ4jW04M"
        )
        let plaintext = try WebPushMessage.decryptLegacy(
            body,
            with: P256KeyPair(scalar: Self.bytes(Self.receiver)),
            auth: Self.bytes(Self.auth),
            salt: Self.bytes(Self.salt),
            sender: P256KeyPair(scalar: Self.bytes(Self.sender)).point
        )
        #expect(plaintext == Self.plaintext)
    }

    @Test("every length that fits, and no byte more; each damaged byte is noticed")
    func lengths() throws {
        let pair = try P256KeyPair.generate()
        let auth = Digests.random(16)
        let target = try #require(WebPushMessage.Receiver(point: pair.point, auth: auth))
        let sender = try P256KeyPair.generate()
        for count in [0, 1, 15, 16, 17, 3992, 3993] {
            let plaintext = Digests.random(count)
            let body = try WebPushMessage.encrypt(
                plaintext,
                to: target,
                sender: sender,
                salt: Digests.random(16)
            )
            #expect(body.count == count + 103)
            #expect(try WebPushMessage.decrypt(body, with: pair, auth: auth) == plaintext)
        }
        #expect(throws: CredentialError.self) {
            try WebPushMessage.encrypt(
                Digests.random(3994),
                to: target,
                sender: sender,
                salt: Digests.random(16)
            )
        }
        let body = try WebPushMessage.encrypt(
            Self.plaintext,
            to: target,
            sender: sender,
            salt: Digests.random(16)
        )
        // The record size may be anything that holds the record.
        for index in body.indices where !(16..<20).contains(index) {
            var damaged = body
            damaged[index] ^= 1
            #expect(throws: WebPushMessage.Failure.self, "byte \(index)") {
                try WebPushMessage.decrypt(damaged, with: pair, auth: auth)
            }
        }
        for count in body.indices {
            #expect(throws: WebPushMessage.Failure.self, "\(count) bytes") {
                try WebPushMessage.decrypt(Array(body[..<count]), with: pair, auth: auth)
            }
        }
    }

    @Test("several records, as some senders write beyond 4,080 bytes")
    func records() throws {
        // RFC 8188 section 3.2: two records of 25 bytes, keyed by an input of our own derivation.
        let pair = try P256KeyPair.generate()
        let auth = Digests.random(16)
        let sender = try P256KeyPair.generate()
        let salt = Digests.random(16)
        let secret = try sender.agree(with: pair.point)
        func hash(_ key: [UInt8], _ bytes: [UInt8]) -> [UInt8] { Digests.hmacSHA256(key: key, bytes) }
        let info = Array("WebPush: info".utf8) + [0] + pair.point + sender.point + [1]
        let random = hash(salt, hash(hash(auth, secret), info))
        let key = Array(hash(random, Array("Content-Encoding: aes128gcm".utf8) + [0, 1]).prefix(16))
        let nonce = Array(hash(random, Array("Content-Encoding: nonce".utf8) + [0, 1]).prefix(12))
        var second = nonce
        second[11] ^= 1
        let body =
            salt + [0, 0, 0, 25, 65] + sender.point
            + (try AES128GCM.seal(Array("12345678".utf8) + [1], key: key, nonce: nonce))
            + (try AES128GCM.seal(Array("90".utf8) + [2, 0, 0], key: key, nonce: second))
        #expect(try WebPushMessage.decrypt(body, with: pair, auth: auth) == Array("1234567890".utf8))
    }

    @Test("a point that is not on the curve is refused, and a scalar out of range")
    func points() throws {
        let pair = try P256KeyPair.generate()
        var point = try P256KeyPair.generate().point
        point[40] ^= 1
        #expect(throws: CredentialError.self) { try pair.agree(with: point) }
        #expect(throws: CredentialError.self) { try SigningKey.p256(point: point) }
        #expect(throws: CredentialError.self) { try pair.agree(with: [4] + [UInt8](repeating: 0, count: 64)) }
        for scalar in [[UInt8](repeating: 0, count: 32), [UInt8](repeating: 255, count: 32), [1]] {
            #expect(throws: CredentialError.self) { try P256KeyPair(scalar: scalar) }
        }
    }

    @Test("VAPID: what is signed is taken; another origin, time or key is not, and the reason says which")
    func vapid() throws {
        let pair = try P256KeyPair.generate()
        let key = try SigningKey.p256(point: pair.point, scalar: pair.scalar)
        let now = Timestamp(seconds: 1_900_000_000)
        func header(_ audience: String, _ life: Int64) throws -> String {
            try VAPID.authorization(
                audience: audience,
                subject: "mailto:a@example.org",
                expires: now + .seconds(life),
                key: key,
                point: pair.point
            )
        }
        func failure(_ fields: HTTPFields) throws -> String? {
            do {
                let claim = try #require(try VAPID.read(fields))
                try VAPID.check(claim, audiences: ["https://push.example.org"], now: now)
                return nil
            } catch let error as CredentialError { return error.description }
        }
        let good = try header("https://push.example.org", 43200)
        #expect(try failure(["Authorization": good]) == nil)
        #expect(try failure(["Authorization": try header("https://push.example.org:443", 60)]) == nil)
        #expect(try failure(["Authorization": good.replacing("vapid", with: "VAPID")]) == nil)
        // Other orders and spellings that libraries write.
        let token = try #require(VAPID.Parameters(String(good.dropFirst(6)))["t"])
        let point = Base64.encodeURL(pair.point)
        #expect(try failure(["Authorization": "vapid k=\(point)=,t=\(token)"]) == nil)
        #expect(
            try failure(["Authorization": "WebPush \(token)", "Crypto-Key": "dh=AA;p256ecdsa=\"\(point)\""])
                == nil
        )
        #expect(
            try failure(["Authorization": try header("https://push.example.com", 60)])?.contains("aud")
                == true
        )
        #expect(
            try failure(["Authorization": try header("https://push.example.org", -5)])?.contains(
                "5 seconds ago"
            ) == true
        )
        #expect(
            try failure(["Authorization": try header("https://push.example.org", 86400 + 61)])?.contains(
                "24 hours"
            ) == true
        )
        let other = Base64.encodeURL(try P256KeyPair.generate().point)
        #expect(try failure(["Authorization": "vapid t=\(token), k=\(other)"])?.contains("signature") == true)
        #expect(try failure(["Authorization": "Basic YQ=="])?.contains("scheme") == true)
        #expect(
            try failure(["Authorization": "vapid t=a.b.c, k=\(point)"])?.contains("JSON Web Token") == true
        )
        #expect(try failure(["Authorization": "vapid t=\(token)"])?.contains("public key") == true)
        #expect(try VAPID.read([:]) == nil)
    }
}

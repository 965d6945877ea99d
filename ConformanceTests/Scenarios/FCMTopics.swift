import HTTPMessages
import JSONBytes
import ProcessLifecycle
import Testing
import TidingsConformance
import TidingsModels

/// Topics of Google's older services, whose state and conditions the v1 service shares.
@Suite("FCM topics")
struct FCMTopics {
    @Test(
        "a condition reaches exactly the devices that it names, also those in no topic, and nobody whose handle was given back"
    )
    func conditions() async throws {
        try await World.run { world in
            let keys = try JSONValue(
                parsing: try Files.read(world.serverState + "/keys/gateway.json") ?? []
            )
            let key = try #require(keys["fcm"]?["serverKey"]?.stringValue)
            let gateway = try world.gatewayURL
            func post(_ path: String, _ body: JSONValue) async throws -> JSONValue {
                let answer = try await world.request(
                    "POST",
                    gateway + path,
                    fields: ["Authorization": "key=" + key, "Content-Type": "application/json"],
                    body: body.serialized()
                )
                return try JSONValue(parsing: answer.body)
            }
            func change(_ operation: String, _ topic: String, _ device: WorldDevice) async throws {
                let answer = try await post(
                    "/iid/v1:" + operation,
                    .object([
                        "to": .string("/topics/" + topic),
                        "registration_tokens": .array([.string(try await device.handle())]),
                    ])
                )
                #expect(answer["results"] == .array([.object(JSONObject())]))
            }
            let (red, both, none) = (
                try await world.device("red", .fcmV1), try await world.device("both", .fcmV1),
                try await world.device("none", .fcmV1)
            )
            try await change("batchAdd", "red", red)
            try await change("batchAdd", "red", both)
            try await change("batchAdd", "blue", both)
            for (condition, hears) in [
                ("'red' in topics", [red, both]), ("'red' in topics && 'blue' in topics", [both]),
                ("'red' in topics && !('blue' in topics)", [red]), ("!('red' in topics)", [none]),
                ("'blue' in topics || !'red' in topics", [both, none]), ("'green' in topics", []),
            ] {
                let answer = try await post(
                    "/fcm/send",
                    .object([
                        "condition": .string(condition),
                        "notification": .object(["body": .string(condition)]),
                    ])
                )
                #expect(answer["message_id"] != nil, "\(condition)")
                for device in hears { #expect(try await device.nextText() == condition) }
            }
            // What each hears next shows that it heard nothing else.
            try await change("batchRemove", "red", red)
            try await red.renewHandle()
            _ = try await post(
                "/fcm/send",
                .object([
                    "condition": "'red' in topics || !('red' in topics)",
                    "notification": .object(["body": "everyone"]),
                ])
            )
            for device in [red, both, none] { #expect(try await device.nextText() == "everyone") }
        }
    }
}

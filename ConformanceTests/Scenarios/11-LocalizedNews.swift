import HubClient
import TidingsConformance
import TidingsModels
import Testing

/// One send, several languages: each device's template names the property of its own.
@Suite("11 Localized news")
struct LocalizedNews {
    @Test("one send shows each subscriber its language, on three platforms")
    func oneSend() async throws {
        try await World.run { world in
            let english = try await world.device("english", .apns)
            let french = try await world.device("french", .fcmV1)
            let mandarin = try await world.device("mandarin", .wns)
            try await english.subscribe(["World"], locale: "English")
            try await french.subscribe(["World"], locale: "French")
            try await mandarin.subscribe(["World"], locale: "Mandarin")

            let id = try #require(
                try await world.hub().send(
                    .template(
                        #"{"News_English":"World news","News_French":"Nouvelles du monde","News_Mandarin":"世界新闻"}"#
                    ),
                    tags: "World"
                )
            )

            #expect(try await english.nextText() == "World news")
            #expect(try await french.nextText() == "Nouvelles du monde")
            #expect(try await mandarin.nextText() == "世界新闻")
            let details = try await world.outcome(id)
            #expect(details.outcomes == [.apns: [.success: 1], .fcmV1: [.success: 1], .wns: [.success: 1]])
        }
    }
}
